//! Scans that are turned, scaled, sheared and moved a little, so that none is seen twice.

use rand::Rng;

use crate::mnist::SIDE;

/// The largest angle (degrees).
const ANGLE: f32 = 12.0;
/// How much larger or smaller a scan becomes at most.
const SCALE: f32 = 0.12;
/// How far a row moves against the next one at most (pixels).
const SHEAR: f32 = 0.1;
/// How far a scan moves at most (pixels).
const SHIFT: f32 = 2.0;

/// The scan turned, scaled, sheared and moved at random: pixels from 0 to 255, interpolated between the nearest four, 0 outside.
pub fn augmented(scan: &[u8], mut random: impl Rng) -> impl Iterator<Item = f32> {
    let mut up_to = |most: f32| random.random_range(-most..=most);
    let angle = up_to(ANGLE).to_radians();
    let scale = 1.0 + up_to(SCALE);
    let shear = up_to(SHEAR);
    let shift = [up_to(SHIFT), up_to(SHIFT)];
    let (sin, cos) = (angle.sin() / scale, angle.cos() / scale);
    let middle = (SIDE as f32 - 1.0) / 2.0;
    (0..SIDE * SIDE).map(move |pixel| {
        let [x, y] = [pixel % SIDE, pixel / SIDE].map(|at| at as f32 - middle);
        let column = cos * x + (shear - sin) * y + shift[0] + middle;
        let row = sin * x + cos * y + shift[1] + middle;
        interpolated(scan, row, column)
    })
}

/// The value at a place between pixels.
fn interpolated(scan: &[u8], row: f32, column: f32) -> f32 {
    let (top, left) = (row.floor(), column.floor());
    let at = |row: f32, column: f32| {
        let inside = |at: f32| (0.0..SIDE as f32).contains(&at).then_some(at as usize);
        let pixel = inside(row).zip(inside(column));
        pixel.map_or(0.0, |(row, column)| f32::from(scan[row * SIDE + column]))
    };
    let (down, right) = (row - top, column - left);
    let between = |row: f32| at(row, left) * (1.0 - right) + at(row, left + 1.0) * right;
    between(top) * (1.0 - down) + between(top + 1.0) * down
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn places_between_pixels_are_interpolated() {
        let mut scan = vec![0; SIDE * SIDE];
        (scan[3 * SIDE + 5], scan[3 * SIDE + 6], scan[4 * SIDE + 5]) = (100, 200, 40);
        assert_eq!(interpolated(&scan, 3.0, 5.0), 100.0);
        assert_eq!(interpolated(&scan, 3.0, 5.5), 150.0);
        assert_eq!(interpolated(&scan, 3.25, 5.0), 85.0);
        assert_eq!(interpolated(&scan, -0.5, 30.0), 0.0);
        scan[SIDE - 1] = 80;
        assert_eq!(interpolated(&scan, 0.0, SIDE as f32 - 0.75), 60.0);
    }

    #[test]
    fn a_scan_changes_a_little_and_by_the_seed() {
        // A bar from row 9 to 18 and column 12 to 15.
        let of_bar = |at: usize| (9..19).contains(&(at / SIDE)) && (12..16).contains(&(at % SIDE));
        let scan: Vec<u8> = (0..SIDE * SIDE)
            .map(|at| if of_bar(at) { 255 } else { 0 })
            .collect();
        let changed =
            |seed| -> Vec<f32> { augmented(&scan, ChaCha8Rng::seed_from_u64(seed)).collect() };
        assert_eq!(changed(1), changed(1));
        assert_ne!(changed(1), changed(2));
        for seed in 0..20 {
            let ink = changed(seed).iter().sum::<f32>() / 255.0;
            // 40 pixels, up to 1.12² times as many or as few.
            assert!((30.0..52.0).contains(&ink), "{ink}");
        }
    }
}
