//! Whether the device has taken the kernels of a call.
//!
//! A launch does not wait for the device. What becomes of a kernel that is too large for it, or that its driver cannot compile, CubeCL would say
//! only to whoever reads the results.

use std::{
    any::TypeId,
    collections::HashSet,
    sync::{LazyLock, Mutex, PoisonError},
};

use burn_attn_kernels_cpu::Problem;
use cubecl::{client::Client, device::DeviceId, ir::ElemType, prelude::VectorSize, server::Handle};

use crate::{
    Operand,
    call::{Call, Pass, dims},
    score::Config,
};

/// Everything that decides which kernels run.
#[derive(PartialEq, Eq, Hash)]
struct Kernels {
    /// And of which runtime it is one.
    device: (DeviceId, TypeId),
    pass: Pass,
    config: Config,
    elems: [ElemType; 2],
    size: VectorSize,
    inputs: [bool; 9],
    /// Over which dimensions the gradient of the bias is summed.
    bias: Option<[bool; 4]>,
    has_tile_kinds: bool,
    results: Vec<bool>,
}

/// What has been asked.
static TAKEN: LazyLock<Mutex<HashSet<Kernels>>> = LazyLock::new(Mutex::default);

impl Call<'_> {
    /// Panics with one sentence if the device has refused a kernel of this call, which was to write `results`.
    ///
    /// Asking waits for all that was launched before to be sent to the device, so it does that once for the same kernels.
    pub(crate) fn confirm(&self, pass: Pass, size: VectorSize, results: &[Option<&Operand>]) {
        let inputs = self.inputs;
        let service = self.client.service_id();
        let kernels = Kernels {
            device: (service.device, service.service),
            pass,
            config: self.config,
            elems: [inputs.query.elem, self.mask_elem()],
            size,
            inputs: inputs.present(),
            bias: inputs.bias.as_ref().map(|bias| {
                let Problem {
                    batch,
                    heads_q,
                    len_q,
                    len_kv,
                    ..
                } = self.problem;
                let [of_batch, of_heads, of_queries, of_keys] = dims(bias);
                [
                    of_batch < batch,
                    of_heads < heads_q,
                    of_queries < len_q,
                    of_keys < len_kv,
                ]
            }),
            has_tile_kinds: self.tile_kinds.is_some(),
            results: results.iter().map(Option::is_some).collect(),
        };
        let taken = || TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken().contains(&kernels) {
            return;
        }
        let handles = results.iter().flatten().map(|result| &result.handle);
        if let Some(why) = refused(self.client, handles) {
            let (elem, problem) = (inputs.query.elem, self.problem);
            panic!("the device refuses a kernel for attention of {elem} with {problem:?}: {why}");
        }
        taken().insert(kernels);
    }
}

/// Why nothing was written to some of the handles; the innermost cause, without a backtrace.
fn refused<'a>(client: &Client, handles: impl Iterator<Item = &'a Handle>) -> Option<String> {
    let error = client.check(handles).err()?.to_string();
    let causes = error.split("Backtrace").next().unwrap_or(&error);
    let cause = causes.rsplit("Caused by:").next().unwrap_or(causes);
    let lines = cause.lines().map(|line| line.trim().trim_end_matches('.'));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    Some(lines.join("; "))
}
