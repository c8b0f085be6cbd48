//! Poison that a query sees: NaN that must not get lost, and huge numbers that must not spread to others.

use burn_attn_kernels_cpu::{
    CausalAlignment::{BottomRight, TopLeft},
    Window,
};

use super::poison::{Junk, Operand, Poison, Put, Reaches, Set};

/// NaN that a query sees: it must not get lost.
pub fn seen(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, len_q, len_kv, ..] = sizes;
    let mut all = Vec::new();
    let mut see = |what: &str, set: Set<'_>, puts: Vec<(Operand, Vec<usize>)>| {
        let mut poison = Poison::new(format!("{path}: NaN in {what}"), sizes);
        set(&mut poison);
        poison.reaches = Reaches::Caller;
        let junk = Junk::Nan;
        let put = |(operand, rows)| Put {
            operand,
            rows,
            junk,
        };
        poison.puts = puts.into_iter().map(put).collect();
        let mut sinks = poison.clone();
        sinks.name += ", with sinks";
        sinks.sinks = Some((0..heads).map(|head| head as f64 / 4.0).collect());
        all.extend([poison, sinks]);
    };
    // The last query of the first head.
    let query = vec![len_q - 1];
    see("a query", &|_| {}, vec![(Operand::Query, query.clone())]);
    see(
        "the gradients of a row",
        &|_| {},
        vec![
            (Operand::OutputGradient, query.clone()),
            (Operand::LogsumexpGradient, query),
        ],
    );
    // The last key of the last key/value head.
    let key = vec![heads_kv * len_kv - 1];
    let both = || vec![(Operand::Key, key.clone()), (Operand::Value, key.clone())];
    see("a key", &|p| p.causal = Some(BottomRight), both());
    see("the only key that a query sees", &only_the_last_key, both());
    see("a value", &|_| {}, vec![(Operand::Value, key.clone())]);
    let shape = [batch, heads, len_q, len_kv];
    let hidden = move |at: usize| at % len_kv == len_kv - 1 && at / len_kv % len_q != len_q - 1;
    let masked = move |poison: &mut Poison| {
        let all = 0..shape.iter().product();
        poison.masked = Some((shape, all.map(hidden).collect()));
    };
    see("a key that one query sees", &masked, both());
    let value = vec![(Operand::Value, key.clone())];
    see("a value that one query sees", &masked, value);
    all
}

fn only_the_last_key(poison: &mut Poison) {
    poison.window = Some(Window {
        left: Some(0),
        right: Some(0),
    });
}

/// Keys and values of the largest numbers that only the last query sees, whose own numbers are zero: for all other queries the
/// products overflow, but have weights of 0.
pub fn seen_by_one(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, len_q, len_kv, ..] = sizes;
    let mut all = Vec::new();
    let mut see = |way: &str, key: usize, set: Set<'_>| {
        let mut poison = Poison::new(format!("{path}: hidden by {way} from all but one"), sizes);
        poison.reaches = Reaches::Viewer;
        set(&mut poison);
        let key_rows = poison.key_rows(0..heads_kv, &[key]);
        let viewers: Vec<usize> = (0..heads).map(|head| head * len_q + len_q - 1).collect();
        let put = |operand, rows: &[usize], junk| Put {
            operand,
            rows: rows.to_vec(),
            junk,
        };
        poison.puts = vec![
            put(Operand::Key, &key_rows, Junk::Largest),
            put(Operand::Value, &key_rows, Junk::Largest),
            put(Operand::Query, &viewers, Junk::Zero),
            put(Operand::OutputGradient, &viewers, Junk::Zero),
            put(Operand::LogsumexpGradient, &viewers, Junk::Zero),
        ];
        let mut capped = poison.clone();
        capped.name += ", with softcap";
        capped.softcap = Some(1.5);
        all.extend([poison, capped]);
    };
    see("the causal mask", len_kv - 1, &|p| {
        p.causal = Some(BottomRight)
    });
    see("the causal mask from the top left", len_q - 1, &|p| {
        p.causal = Some(TopLeft)
    });
    see("a window", len_kv - 1, &|p| {
        p.window = Some(Window {
            left: None,
            right: Some(0),
        });
    });
    let shape = [batch, heads, len_q, len_kv];
    let hides = |at: usize| at % len_kv == 1 && at / len_kv % len_q != len_q - 1;
    let scores = batch * heads * len_q * len_kv;
    see("a mask", 1, &|p| {
        p.masked = Some((shape, (0..scores).map(hides).collect()));
    });
    see("a bias", 1, &|p| {
        let bias = (0..scores).map(|at| if hides(at) { f64::NEG_INFINITY } else { 0.5 });
        p.bias = Some((shape, bias.collect()));
    });
    all
}
