//! How threads are divided.

use super::*;

#[test]
fn no_more_threads_are_started_than_there_are_unless_each_has_one() {
    let five = ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    let threads = |count: usize| -> Vec<usize> {
        let replicas = five.install(|| Replicas::new(count));
        let pools = replicas.pools.iter();
        pools.map(|pool| pool.current_num_threads()).collect()
    };
    assert!(threads(1).is_empty());
    assert_eq!(threads(2), [3, 2]);
    assert_eq!(threads(3), [2, 2, 1]);
    assert_eq!(threads(7), [1; 7]);
}
