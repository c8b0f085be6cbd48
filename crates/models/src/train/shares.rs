//! The parameters of a model in shares that threads work on side by side.

use std::{any::Any, cmp::Reverse, collections::HashMap};

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId},
    optim::GradientsParams,
    tensor::Tensor,
};

/// Which share every parameter of a model is in. It depends on nothing but the model and the number of shares.
pub(super) struct Shares {
    count: usize,
    of: HashMap<ParamId, usize>,
}

impl Shares {
    /// `count` shares of about as many numbers.
    pub(super) fn new<M: Module>(model: &M, count: usize) -> Self {
        let mut sizes = Sizes::default();
        model.visit(&mut sizes);
        // The largest first, each into the share that is the smallest so far.
        sizes.0.sort_by_key(|&(_, size)| Reverse(size));
        let mut filled = vec![0; count];
        let mut of = HashMap::new();
        for (id, size) in sizes.0 {
            let share = (0..count)
                .min_by_key(|&share| filled[share])
                .unwrap_or_default();
            filled[share] += size;
            of.insert(id, share);
        }
        Self { count, of }
    }

    /// The gradients of each share.
    pub(super) fn divide<M: Module>(
        &self,
        model: &M,
        gradients: GradientsParams,
    ) -> Vec<GradientsParams> {
        self.moved(model, vec![gradients], self.count)
    }

    /// The gradients of all shares together.
    pub(super) fn join<M: Module>(
        &self,
        model: &M,
        divided: Vec<GradientsParams>,
    ) -> GradientsParams {
        self.moved(model, divided, 1).remove(0)
    }

    fn moved<M: Module>(
        &self,
        model: &M,
        from: Vec<GradientsParams>,
        count: usize,
    ) -> Vec<GradientsParams> {
        let to = (0..count).map(|_| GradientsParams::new()).collect();
        let mut all = Move {
            shares: self,
            from,
            to,
        };
        model.visit(&mut all);
        all.to
    }

    /// The parameters of a share, of a model that was updated.
    pub(super) fn take<M: Module>(&self, share: usize, updated: &M) -> Parameters {
        let mut taken = Parameters::of(updated);
        taken.0.retain(|id, _| self.of[id] == share);
        taken
    }
}

/// Parameters of every rank.
#[derive(Default)]
pub(super) struct Parameters(HashMap<ParamId, Box<dyn Any + Send>>);

impl Parameters {
    pub(super) fn of<M: Module>(model: &M) -> Self {
        let mut all = Self::default();
        model.visit(&mut all);
        all
    }

    pub(super) fn remove<const D: usize>(&mut self, id: ParamId) -> Option<Param<Tensor<D>>> {
        self.0.remove(&id)?.downcast().ok().map(|param| *param)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Puts these parameters in the place of those of the model with the same ids.
    pub(super) fn put_into<M: Module>(mut self, model: M) -> M {
        model.map(&mut self)
    }
}

impl ModuleMapper for Parameters {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.remove(param.id).unwrap_or(param)
    }
}

impl ModuleVisitor for Parameters {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.insert(param.id, Box::new(param.clone()));
    }
}

#[derive(Default)]
struct Sizes(Vec<(ParamId, usize)>);

impl ModuleVisitor for Sizes {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push((param.id, param.val().shape().num_elements()));
    }
}

/// Moves gradients from one set to as many as there are shares, or back.
struct Move<'a> {
    shares: &'a Shares,
    from: Vec<GradientsParams>,
    to: Vec<GradientsParams>,
}

impl ModuleVisitor for Move<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let share = self.shares.of[&param.id];
        let place = |sets: &[GradientsParams]| share.min(sets.len() - 1);
        let (from, to) = (place(&self.from), place(&self.to));
        if let Some(gradient) = self.from[from].remove::<D>(param.id) {
            self.to[to].register(param.id, gradient);
        }
    }
}
