use super::*;

fn brightness([red, green, blue]: Rgb) -> f32 {
    0.2126 * f32::from(red) + 0.7152 * f32::from(green) + 0.0722 * f32::from(blue)
}

#[test]
fn brightness_is_monotone_over_the_whole_scale() {
    for (background, sign) in [(Background::Light, -1.0), (Background::Dark, 1.0)] {
        for step in 0..100 {
            let from = brightness(background.shade(step as f32 / 100.0));
            let to = brightness(background.shade((step + 1) as f32 / 100.0));
            assert!((to - from) * sign > 0.0, "{background:?} at {step}");
        }
    }
}

#[test]
fn ends_of_the_scale_are_its_first_and_last_stop() {
    assert_eq!(Background::Light.shade(0.0), LIGHT[0]);
    assert_eq!(Background::Light.shade(1.0), LIGHT[8]);
    assert_eq!(Background::Dark.shade(7.0), DARK[8]);
    assert_eq!(Background::Dark.shade(-1.0), DARK[0]);
    assert_eq!(hex(LIGHT[0]), "#f7fafe");
}
