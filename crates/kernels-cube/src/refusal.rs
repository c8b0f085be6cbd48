//! Whether the device computes a call.
//!
//! A launch does not wait for the device: CubeCL reports a kernel that is too large, or that the driver cannot compile, only when its results are
//! read.

#[cfg(test)]
pub(crate) mod tests;

use std::{
    any::TypeId,
    collections::HashSet,
    error::Error,
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
};

use cubecl::{client::Client, device::DeviceId, ir::ElemType, prelude::VectorSize, server::Handle};

use crate::{Operand, bias_part::Sums, call::Call, scoring::Config, supports::Pass};

/// Why a device did not compute a call, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Refusal {}

/// Everything that decides which variants of the kernels run.
#[derive(PartialEq, Eq, Hash)]
struct Kernels {
    /// The type of its runtime.
    device: (DeviceId, TypeId),
    pass: Pass,
    config: Config,
    elems: [ElemType; 2],
    /// Width of a value head: a constant in the kernels for few queries.
    dim_v: usize,
    size: VectorSize,
    inputs: [bool; 9],
    /// How the gradient of the bias is summed.
    bias: Option<Sums>,
    has_tile_kinds: bool,
    results: Vec<bool>,
}

/// The kernel variants that a device has not refused.
static TAKEN: LazyLock<Mutex<HashSet<Kernels>>> = LazyLock::new(Mutex::default);

impl Call<'_> {
    /// Fails if the device refused a kernel of this call, which was to write `results`, or if an input was never computed.
    ///
    /// Asking waits until all earlier launches are sent to the device, so the device is asked once per variant. What fails later, such as an allocation,
    /// is found when results are read.
    pub(crate) fn confirm(
        &self,
        pass: Pass,
        size: VectorSize,
        results: &[Option<&Operand>],
    ) -> Result<(), Refusal> {
        let inputs = self.inputs;
        let service = self.client.service_id();
        let kernels = Kernels {
            device: (service.device, service.service),
            pass,
            config: self.config,
            elems: [inputs.query.elem, self.mask_elem()],
            dim_v: self.problem.dim_v,
            size,
            inputs: inputs.present(),
            bias: inputs
                .bias
                .as_ref()
                .map(|bias| Sums::of(bias, &self.problem)),
            has_tile_kinds: self.tile_kinds.is_some(),
            results: results.iter().map(Option::is_some).collect(),
        };
        let taken = || TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken().contains(&kernels) {
            return Ok(());
        }
        let handles = results.iter().flatten().map(|result| &result.handle);
        if let Some(why) = refused(self.client, handles) {
            let (elem, problem) = (inputs.query.elem, self.problem);
            let otherwise = match self.config.matrix {
                Some(_) => "; `BURN_ATTN_MATRIX_UNITS=off` computes without matrix units",
                None => "",
            };
            return Err(Refusal(format!(
                "attention of {elem} with {problem:?} was not computed: {why}{otherwise}"
            )));
        }
        taken().insert(kernels);
        Ok(())
    }
}

/// Why the device wrote nothing to some of the handles.
fn refused<'a>(client: &Client, handles: impl Iterator<Item = &'a Handle>) -> Option<String> {
    #[cfg(test)]
    tests::ASKED.set(tests::ASKED.get() + 1);
    let error = client.check(handles).err()?;
    Some(innermost(&error.to_string()))
}

/// The innermost cause, in one line: without a backtrace, and without the source of the kernel, which some runtimes append.
fn innermost(error: &str) -> String {
    let end = ["Backtrace", "[Source]"].into_iter();
    let end = end.filter_map(|mark| error.find(mark)).min();
    let causes = &error[..end.unwrap_or(error.len())];
    let cause = causes.rsplit("Caused by:").next().unwrap_or(causes);
    let lines = cause.lines().map(|line| line.trim().trim_end_matches('.'));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}
