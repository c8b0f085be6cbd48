use super::*;

#[test]
fn pieces_begin_at_lines_and_the_sum_is_enough() {
    for sizes in [[1, 2, 3], [16, 5, 0], [0, 0, 0], [33, 16, 47]] {
        with_scratch::<f64, _>(sum_of_pieces(sizes), |mut scratch| {
            for size in sizes {
                let piece = take(&mut scratch, size);
                assert_eq!(piece.len(), size);
                assert!(size == 0 || piece.as_ptr().addr().is_multiple_of(LINE));
                assert!(!cfg!(debug_assertions) || piece.iter().all(|x| x.is_nan()));
            }
            assert!(scratch.is_empty());
        });
    }
}

#[test]
fn a_call_inside_a_call_has_memory_of_its_own() {
    with_scratch::<f32, _>(100, |outer| {
        outer.fill(1.0);
        with_scratch::<f32, _>(100, |inner| inner.fill(2.0));
        assert!(outer.iter().all(|&x| x == 1.0));
    });
}

#[test]
fn a_thread_keeps_what_it_has_used() {
    // Two nested calls, twice, so that both buffers exist the second time.
    let addresses = [(); 2].map(|()| {
        with_scratch::<f32, _>(50_000, |outer| {
            let inner = with_scratch::<f32, _>(30_000, |inner| inner.as_ptr().addr());
            (outer.as_ptr().addr(), inner)
        })
    });
    assert_eq!(addresses[0], addresses[1]);
}
