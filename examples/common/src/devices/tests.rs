//! Devices by name.

use super::*;

#[test]
#[cfg(not(feature = "cuda"))]
fn a_missing_backend_names_its_feature() {
    let cuda: DeviceArg = "cuda:1".parse().unwrap();
    let error = choose(Some(cuda)).unwrap_err().to_string();
    assert_eq!(error, "device `cuda` is not built in: add --features cuda");
}

#[test]
#[cfg(feature = "flex")]
fn a_built_in_device_opens() {
    let flex = "flex".parse().unwrap();
    assert_eq!(choose(Some(flex)).unwrap().name, "flex");
}

#[test]
fn only_a_gpu_has_a_number() {
    for text in ["flex:0", "cuda:", "cuda:x", "gpu", ""] {
        let error = text.parse::<DeviceArg>().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "{text:?} is not a device: use flex, ndarray, wgpu, vulkan, metal, webgpu, cuda, rocm, cpu, or the number of a GPU \
                 behind its name, as in cuda:1; wgpu, vulkan, metal and webgpu number discrete GPUs alone"
            )
        );
    }
    assert_eq!(
        "Vulkan:2".parse::<DeviceArg>().unwrap().to_string(),
        "vulkan:2"
    );
}
