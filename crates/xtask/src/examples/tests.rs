use super::falling;

#[test]
fn the_last_loss_is_less_than_half_of_the_first() {
    assert_eq!(
        falling("step 1 loss 4\nstep 2 loss 5\nstep 3 loss 1.9"),
        Ok(())
    );
    assert_eq!(falling("step 1 loss 4\nstep 2 loss 2"), Err(vec![4.0, 2.0]));
    assert_eq!(falling("nothing was trained"), Err(vec![]));
}
