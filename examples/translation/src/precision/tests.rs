//! Devices that do not compute in bf16.

use super::*;

#[test]
fn a_device_without_it_is_refused() {
    #[allow(deprecated, reason = "as in `example_common`")]
    let device = Device::ndarray();
    let check = |precision: Precision| precision.check(&device, "ndarray");
    assert!(check(Precision::F32).is_ok());
    assert_eq!(
        check(Precision::Bf16).unwrap_err().to_string(),
        "--precision bf16 needs a device that computes in it, such as flex, got ndarray"
    );
}
