//! Texts in batches of about one length, which need little padding.

/// What `outputs` makes of each item, in the order of the items. `outputs` gets at most `size` items of about one length at a time. Where it
/// makes nothing of them, they get the default.
pub fn in_batches<I, O: Clone + Default>(
    items: &[I],
    len: impl Fn(&I) -> usize,
    size: usize,
    mut outputs: impl FnMut(&[&I]) -> Vec<O>,
) -> Vec<O> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&item| len(&items[item]));
    let mut found = vec![O::default(); items.len()];
    for batch in order.chunks(size) {
        let of_batch: Vec<&I> = batch.iter().map(|&item| &items[item]).collect();
        for (&item, output) in batch.iter().zip(outputs(&of_batch)) {
            found[item] = output;
        }
    }
    found
}
