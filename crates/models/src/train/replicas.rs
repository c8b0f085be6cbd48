//! Replicas of a model, each with a share of the threads.

use std::{
    panic::resume_unwind,
    thread::{self, ScopedJoinHandle},
};

use burn::{
    lr_scheduler::module_lr_scheduler::ModuleLearningRate,
    module::{Module, ModuleMapper, Param},
    optim::{GradientsAccumulator, GradientsParams, ModuleOptimizer},
    tensor::{
        Device, Tensor,
        distributed::{DistributedConfig, DistributedContext, ReduceOperation},
    },
    train::{TrainOutput, TrainStep},
};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{
    clip,
    shares::{Parameters, Shares},
};

/// Replicas of a model that share the work of a step. The CPU's threads are divided among them as equally as possible, and each has at least
/// one.
///
/// Most of a step of a small model is not in matrix products, and on flex and ndarray what is not runs on one thread. Replicas run it
/// side by side, each on a shard of the batch. Their gradients are added up in the order of the shards, so a run repeats to the bit. With one
/// replica, a step is the model's own, on any device.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::{optim::AdamConfig, tensor::Device};
/// use burn_attn_models::{language_model::{AbsolutePosition, LanguageModelConfig}, train::{LanguageModelBatch, Replicas, TokenBatch}};
///
/// let device = Device::default().autodiff();
/// let config = LanguageModelConfig::new(100).with_d_model(32).with_n_heads(4);
/// let model = config.with_absolute_position(AbsolutePosition::Sinusoidal).init(&device);
/// // Shards of a batch with 3 + 2 tokens to predict: both are divided by 5, as the whole would be.
/// let shards = [vec![5, 6, 7, 8], vec![9, 8, 7]].map(|text| LanguageModelBatch::new(&[text], &device).divided_by(5));
/// let replicas = Replicas::new(2);
/// let mut optimizers = vec![AdamConfig::new().init(); replicas.count()];
/// let (outputs, gradients) = replicas.step(&model, shards.into());
/// assert_eq!(outputs.len(), 2);
/// let gradients = replicas.clip_by_global_norm(gradients, &model, 1.0);
/// let model = replicas.update(&mut optimizers, 1e-3, model, gradients);
/// # }
/// ```
#[derive(Debug)]
pub struct Replicas {
    /// Empty for a single replica, which has all threads.
    pools: Vec<ThreadPool>,
    /// Empty for replicas that share the threads of one device.
    devices: Vec<Device>,
    /// Runs while devices exchange gradients among themselves.
    pub(super) exchange: Option<DistributedContext>,
}

impl Replicas {
    /// `count` replicas, among which the threads of rayon's pool are divided.
    ///
    /// # Panics
    ///
    /// When `count` is 0, or the system has no threads left.
    pub fn new(count: usize) -> Self {
        assert!(count > 0, "Replicas: there must be at least one, got 0");
        let all = rayon::current_num_threads();
        let pool = |replica: usize| {
            let threads = (all / count + usize::from(replica < all % count)).max(1);
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap_or_else(|error| {
                panic!(
                    "Replicas: cannot start {threads} threads for replica {replica} of {count}: {error}"
                )
            })
        };
        let pools = if count > 1 { count } else { 0 };
        Self {
            pools: (0..pools).map(pool).collect(),
            devices: Vec::new(),
            exchange: None,
        }
    }

    /// A replica on each of these devices. Gradients are added up on the first one, which has the model and the optimizer.
    ///
    /// # Panics
    ///
    /// When there is no device.
    pub fn on(devices: &[Device]) -> Self {
        assert!(!devices.is_empty(), "Replicas: there must be a device");
        Self {
            pools: Vec::new(),
            devices: devices.iter().cloned().map(Device::autodiff).collect(),
            exchange: None,
        }
    }

    /// As [`on`](Self::on), but the devices exchange gradients among themselves during the backward pass. [`step`](Self::step) then needs a
    /// shard for each device, or one shard. In Burn 0.22, only CUDA devices can; this has never been run.
    ///
    /// # Panics
    ///
    /// When there is no device, or one of them cannot.
    pub fn exchanging(devices: &[Device]) -> Self {
        let config = DistributedConfig {
            all_reduce_op: ReduceOperation::Sum,
        };
        Self {
            exchange: Some(DistributedContext::init(devices.to_vec(), config)),
            ..Self::on(devices)
        }
    }

    /// A number of replicas for this machine: one for each thread of rayon's pool, at most 4. On two cores, two made training the
    /// translator's default model 1.7 times as fast, and four no faster than that; on more cores it was not measured.
    pub fn recommended() -> usize {
        rayon::current_num_threads().clamp(1, 4)
    }

    /// The number of replicas.
    pub fn count(&self) -> usize {
        self.pools.len().max(self.devices.len()).max(1)
    }

    /// The device of each, with autodiff. Empty for replicas that share the threads of the model's device.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// A step of `model` on every shard of a batch: the outputs in the order of the shards, and the sum of the gradients, added up in that order.
    ///
    /// The losses of the shards must be made to add up to that of the batch, as by
    /// [`divided_by`](super::TokenBatch::divided_by). Running statistics, such as those of a batch norm, become those of the first replica, as in
    /// PyTorch's `DistributedDataParallel` with `broadcast_buffers`.
    ///
    /// # Panics
    ///
    /// When there is no shard, or more of them than replicas, or fewer (but not one) than devices that exchange gradients, which would wait for each
    /// other; when two replicas or more would share a model that is on several devices.
    ///
    /// # Cost
    ///
    /// The cost of the steps; a sum of two gradients of the whole model for every replica but one, on the threads of all.
    pub fn step<M>(&self, model: &M, shards: Vec<M::Input>) -> (Vec<M::Output>, GradientsParams)
    where
        M: Module + TrainStep + Send,
    {
        assert!(
            (1..=self.count()).contains(&shards.len()),
            "Replicas: there must be from 1 to {} shards, one for each replica at most, got {}",
            self.count(),
            shards.len()
        );
        assert!(
            self.exchange.is_none() || [1, self.count()].contains(&shards.len()),
            "Replicas: each of {} devices that exchange gradients needs a shard, got {}",
            self.count(),
            shards.len()
        );
        let steps = match <[M::Input; 1]>::try_from(shards) {
            Ok([whole]) => vec![model.step(whole)],
            Err(shards) if self.devices.is_empty() => self.step_side_by_side(model, shards),
            Err(shards) => self.step_on_devices(model, shards),
        };
        // Burn 0.22.1 keeps the newest update of running statistics aside, per thread, where a checkpoint does not see it.
        drop(model.valid());
        let (outputs, mut gradients): (Vec<_>, Vec<_>) = steps
            .into_iter()
            .map(|TrainOutput { item, grads }| (item, grads))
            .unzip();
        if self.exchange.is_some() {
            // Each device has the sum.
            gradients.truncate(1);
        }
        (outputs, self.sum(model, gradients))
    }

    /// [`clip_by_global_norm`](super::clip_by_global_norm) on the threads of all replicas.
    ///
    /// # Panics
    ///
    /// Unless the limit is above 0.
    pub fn clip_by_global_norm<M: Module + Send>(
        &self,
        gradients: GradientsParams,
        model: &M,
        limit: f64,
    ) -> GradientsParams {
        clip::check(limit);
        let shares = Shares::new(model, self.pools.len().max(1));
        let divided = shares.divide(model, gradients);
        let squares = self.side_by_side(model, divided, |_, model, gradients| {
            (clip::squares(&gradients, &model), gradients)
        });
        let (squares, divided): (Vec<_>, Vec<_>) = squares.into_iter().unzip();
        let Some(sum) = squares.into_iter().flatten().reduce(clip::plus) else {
            return GradientsParams::new();
        };
        let factor = clip::factor(sum, limit);
        let scaled = self.side_by_side(model, divided, |_, model, gradients| {
            clip::scaled(gradients, &model, factor.clone())
        });
        shares.join(model, scaled)
    }

    /// Updates the parameters of `model`, each by one of the optimizers, which run on the threads of the replicas.
    ///
    /// Which one that is depends on nothing but the model and the number of optimizers, so a run that is resumed with the records of all
    /// of them goes on as it was. That number need not be the number of replicas.
    ///
    /// # Panics
    ///
    /// When there is no optimizer.
    pub fn update<M: Module + Send>(
        &self,
        optimizers: &mut [ModuleOptimizer],
        learning_rate: impl Into<ModuleLearningRate>,
        model: M,
        gradients: GradientsParams,
    ) -> M {
        if let [optimizer] = optimizers {
            return optimizer.step(learning_rate, model, gradients);
        }
        assert!(!optimizers.is_empty(), "Replicas: there is no optimizer");
        let learning_rate = learning_rate.into();
        let shares = Shares::new(&model, optimizers.len());
        let divided = shares.divide(&model, gradients);
        let work = optimizers.iter_mut().zip(divided).collect();
        let updated = self.side_by_side(&model, work, |share, model, (optimizer, gradients)| {
            let updated = optimizer.step(learning_rate.clone(), model, gradients);
            shares.take(share, &updated)
        });
        let mut all = Parameters::default();
        updated.into_iter().for_each(|share| all.extend(share));
        all.put_into(model)
    }

    fn step_side_by_side<M>(&self, model: &M, shards: Vec<M::Input>) -> Vec<TrainOutput<M::Output>>
    where
        M: Module + TrainStep + Send,
    {
        let devices = model.devices();
        assert!(
            devices.len() <= 1,
            "Replicas: the model must be on one device, got {devices:?}"
        );
        let device = devices.into_iter().next().unwrap_or_default();
        self.side_by_side(model, shards, |replica, model, shard| {
            replica_of(model, replica, &device).step(shard)
        })
    }

    /// The steps of the devices, with their gradients on the first one.
    fn step_on_devices<M>(&self, model: &M, shards: Vec<M::Input>) -> Vec<TrainOutput<M::Output>>
    where
        M: Module + TrainStep + Send,
    {
        let main = self.devices[0].clone().inner();
        let exchanges = self.exchange.is_some();
        thread::scope(|scope| {
            let threads: Vec<_> = shards
                .into_iter()
                .zip(&self.devices)
                .enumerate()
                .map(|(replica, (shard, device))| {
                    let model = model.clone();
                    scope.spawn(move || {
                        let model = replica_of(model, replica, device);
                        match exchanges {
                            true => model.map(&mut Exchanged).step(shard),
                            false => model.step(shard),
                        }
                    })
                })
                .collect();
            let steps = threads.into_iter().map(joined);
            steps
                .map(|TrainOutput { item, grads }| TrainOutput {
                    item,
                    grads: grads.to_device(&main, model),
                })
                .collect()
        })
    }

    /// Adds up the gradients of the parameters of `model`, in the order of the replicas.
    fn sum<M: Module + Send>(
        &self,
        model: &M,
        mut gradients: Vec<GradientsParams>,
    ) -> GradientsParams {
        if gradients.len() == 1 {
            return gradients.remove(0);
        }
        let shares = Shares::new(model, self.pools.len().max(1));
        let gradients = gradients.into_iter();
        let divided = gradients.map(|of_replica| shares.divide(model, of_replica));
        let sum = divided.reduce(|sum, more| {
            let pairs = sum.into_iter().zip(more).collect();
            self.side_by_side(model, pairs, |_, model, (sum, more)| {
                let mut all = GradientsAccumulator::new();
                all.accumulate(&model, sum);
                all.accumulate(&model, more);
                all.grads()
            })
        });
        shares.join(model, sum.expect("a batch has a shard"))
    }

    /// Runs every piece of work with its number and a clone of the model, each on the threads of one replica; one after the other if there is only
    /// one replica.
    fn side_by_side<M, W, T>(
        &self,
        model: &M,
        work: Vec<W>,
        run: impl Fn(usize, M, W) -> T + Sync,
    ) -> Vec<T>
    where
        M: Module + Send,
        W: Send,
        T: Send,
    {
        let work = work.into_iter().enumerate();
        if self.pools.is_empty() {
            return work
                .map(|(number, work)| run(number, model.clone(), work))
                .collect();
        }
        let run = &run;
        thread::scope(|scope| {
            let threads: Vec<_> = work
                .zip(self.pools.iter().cycle())
                .map(|((number, work), pool)| {
                    let model = model.clone();
                    scope.spawn(move || pool.install(move || run(number, model, work)))
                })
                .collect();
            threads.into_iter().map(joined).collect()
        })
    }
}

/// The model on the device of a replica, with a separate graph: graphs that share parameters would wait for each other.
///
/// The first replica updates the running statistics of the model, which clones share; the others update copies.
fn replica_of<M: Module>(model: M, replica: usize, device: &Device) -> M {
    let model = match replica {
        0 => model,
        _ => model.valid().train(),
    };
    model.fork(device)
}

/// The result of a thread; a panic of the thread goes on here.
fn joined<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Marks parameters whose gradients the devices exchange.
struct Exchanged;

impl ModuleMapper for Exchanged {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, tensor.set_distributed(id), mapper)
    }
}

#[cfg(test)]
mod tests;
