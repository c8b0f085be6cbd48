//! More heads than one dimension of a grid holds.

use cubecl::client::Client;

use super::{
    case::Case,
    device::{F32, client, floats, read, unwritten},
    oracle::check,
};
use crate::{Inputs, Operand, forward, tile::Tile};

/// The device, and more batch items than a dimension of its grid; `None` without an adapter, or where the grid is too large for a test.
fn too_many() -> Option<(Client, usize)> {
    let client = client()?;
    let most = client.properties().hardware.max_cube_count.1 as usize;
    if most >= 1 << 17 {
        eprintln!("skipped: the grid of this device has no end");
        return None;
    }
    Some((client, most + 2))
}

#[test]
fn tiles_of_many_heads() {
    let Some((_, batch)) = too_many() else {
        return;
    };
    check(&Case {
        tile: Some(Tile::square(32, 4, 4)),
        ..Case::new([batch, 1, 1, 2, 3, 4, 4])
    });
}

/// All heads read the same memory, and have the same output.
#[test]
fn few_queries_of_many_heads() {
    let Some((client, batch)) = too_many() else {
        return;
    };
    let repeated = |data: &[f64], len| Operand {
        shape: vec![batch, 1, len, 4],
        strides: vec![0, 0, 4, 1],
        ..floats(&client, data, &[1, 1, len, 4])
    };
    let keys = [0.5, -1.0, 0.0, 1.0, 0.0, 0.0, 2.0, 1.0];
    let key = repeated(&keys, 2);
    let query = repeated(&[1.0, 2.0, 3.0, 4.0], 1);
    let inputs = Inputs::new(query, key.clone(), key, 0.1);
    let output = unwritten(&client, F32, &[batch, 1, 1, 4]);
    let logsumexp = unwritten(&client, F32, &[batch, 1, 1]);
    forward(&client, &inputs, &output, &logsumexp).unwrap();
    // Dot products 2.5 and 10.
    let powers = [0.25_f64.exp(), 1.0_f64.exp()];
    let whole = powers[0] + powers[1];
    let expected: [f64; 4] = core::array::from_fn(|column| {
        (powers[0] * keys[column] + powers[1] * keys[4 + column]) / whole
    });
    for (at, row) in read(&client, &output).chunks(4).enumerate() {
        for (actual, expected) in row.iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-6, "{row:?} of {at}");
        }
    }
    for (at, actual) in read(&client, &logsumexp).into_iter().enumerate() {
        assert!((actual - whole.ln()).abs() < 1e-6, "{actual} of {at}");
    }
}
