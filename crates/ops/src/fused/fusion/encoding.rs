//! Everything of a call that is not a tensor, as the scalars of a custom operation.

use burn_attn_kernels_cpu::{BlockSize, CausalAlignment, Dropout, PositionMask, Window};
use burn_fusion::custom::ScalarIr;

use crate::backend::{AttentionScalars, Body};

/// A value that scalars can say exactly.
pub(super) trait Encode: Sized {
    /// Appends the scalars that say the value.
    fn encode(self, scalars: &mut Vec<ScalarIr>);

    /// The value whose scalars come next; takes these and no more.
    ///
    /// # Panics
    /// The scalars are not those of such a value.
    fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self;
}

macro_rules! one_scalar {
    ($type:ty, $variant:ident) => {
        impl Encode for $type {
            fn encode(self, scalars: &mut Vec<ScalarIr>) {
                scalars.push(ScalarIr::$variant(self));
            }

            fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
                match scalars.next() {
                    Some(ScalarIr::$variant(value)) => value,
                    other => panic!(
                        "attention: expected a scalar {}, but found {other:?}",
                        stringify!($variant)
                    ),
                }
            }
        }
    };
}

one_scalar!(bool, Bool);
one_scalar!(u64, UInt);
one_scalar!(f64, Float);

impl Encode for usize {
    fn encode(self, scalars: &mut Vec<ScalarIr>) {
        (self as u64).encode(scalars);
    }

    fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
        u64::decode(scalars) as usize
    }
}

/// Whether there is a value, then the value.
impl<T: Encode> Encode for Option<T> {
    fn encode(self, scalars: &mut Vec<ScalarIr>) {
        self.is_some().encode(scalars);
        if let Some(value) = self {
            value.encode(scalars);
        }
    }

    fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
        bool::decode(scalars).then(|| T::decode(scalars))
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    fn encode(self, scalars: &mut Vec<ScalarIr>) {
        for value in self {
            value.encode(scalars);
        }
    }

    fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
        core::array::from_fn(|_| T::decode(scalars))
    }
}

/// One field after the other; a struct with a field that is not named here does not compile.
macro_rules! fields {
    ($type:ident { $($field:ident),* }) => {
        impl Encode for $type {
            fn encode(self, scalars: &mut Vec<ScalarIr>) {
                let Self { $($field),* } = self;
                $($field.encode(scalars);)*
            }

            fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
                Self { $($field: Encode::decode(scalars)),* }
            }
        }
    };
}

fields!(AttentionScalars {
    scale,
    softcap,
    by_position,
    block_size,
    dropout,
    body
});
fields!(PositionMask { causal, window });
fields!(Window { left, right });
fields!(BlockSize { queries, keys });
fields!(Dropout { probability, seed });

impl Encode for CausalAlignment {
    fn encode(self, scalars: &mut Vec<ScalarIr>) {
        let top_left = match self {
            Self::BottomRight => false,
            Self::TopLeft => true,
        };
        top_left.encode(scalars);
    }

    fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
        match bool::decode(scalars) {
            false => Self::BottomRight,
            true => Self::TopLeft,
        }
    }
}

/// Whether it is a blockwise body, then whether its blocks have a size, then the size.
impl Encode for Body {
    fn encode(self, scalars: &mut Vec<ScalarIr>) {
        let blockwise = match self {
            Self::Fastest => None,
            Self::Blockwise => Some(None),
            Self::BlocksOf(scores) => Some(Some(scores)),
        };
        blockwise.encode(scalars);
    }

    fn decode(scalars: &mut impl Iterator<Item = ScalarIr>) -> Self {
        match Encode::decode(scalars) {
            None => Self::Fastest,
            Some(None) => Self::Blockwise,
            Some(Some(scores)) => Self::BlocksOf(scores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(left: Option<usize>, right: Option<usize>) -> Option<Window> {
        Some(Window { left, right })
    }

    /// Calls of which any two differ, most of them in one field only.
    fn calls() -> Vec<AttentionScalars> {
        let call = AttentionScalars {
            scale: 0.1,
            softcap: Some(30.7),
            by_position: PositionMask::new(
                Some(CausalAlignment::TopLeft),
                window(Some(3), Some(5)),
            ),
            block_size: Some(BlockSize {
                queries: 11,
                keys: 13,
            }),
            dropout: Some(Dropout {
                probability: 0.2,
                seed: u64::MAX - 1,
            }),
            body: Body::Fastest,
        };
        let mut calls = vec![call];
        let mut differing = |change: fn(&mut AttentionScalars)| {
            let mut changed = call;
            change(&mut changed);
            calls.push(changed);
        };
        differing(|call| call.scale = -0.3);
        differing(|call| call.softcap = None);
        differing(|call| call.softcap = Some(7.0));
        differing(|call| call.by_position.causal = None);
        differing(|call| call.by_position.causal = Some(CausalAlignment::BottomRight));
        differing(|call| call.by_position.window = None);
        differing(|call| call.by_position.window = Some(Window::default()));
        differing(|call| call.by_position.window = window(None, Some(3)));
        differing(|call| call.by_position.window = window(None, Some(5)));
        differing(|call| call.by_position.window = window(Some(3), None));
        differing(|call| call.by_position.window = window(Some(5), None));
        differing(|call| call.by_position.window = window(Some(5), Some(3)));
        differing(|call| call.by_position.window = window(Some(usize::MAX), Some(0)));
        differing(|call| call.block_size = None);
        differing(|call| call.block_size = Some([13, 11].into()));
        differing(|call| call.dropout = None);
        differing(|call| call.dropout.as_mut().unwrap().probability = 0.0);
        // Neither a float nor a signed integer holds these two apart from the first.
        differing(|call| call.dropout.as_mut().unwrap().seed = u64::MAX);
        differing(|call| call.dropout.as_mut().unwrap().seed = 0);
        differing(|call| call.body = Body::Blockwise);
        differing(|call| call.body = Body::BlocksOf(1));
        differing(|call| call.body = Body::BlocksOf(17));
        calls
    }

    fn encoded<T: Encode>(value: T) -> Vec<ScalarIr> {
        let mut scalars = Vec::new();
        value.encode(&mut scalars);
        scalars
    }

    #[test]
    fn every_field_survives() {
        let flags = [true, false, false, true];
        for call in calls() {
            let mut scalars = encoded(flags);
            call.encode(&mut scalars);
            flags.map(|flag| !flag).encode(&mut scalars);
            let mut scalars = scalars.into_iter();
            assert_eq!(<[bool; 4]>::decode(&mut scalars), flags);
            assert_eq!(AttentionScalars::decode(&mut scalars), call);
            assert_eq!(<[bool; 4]>::decode(&mut scalars), flags.map(|flag| !flag));
            assert_eq!(scalars.next(), None);
        }
    }

    #[test]
    fn calls_that_differ_have_different_scalars() {
        let calls = calls();
        for (index, &call) in calls.iter().enumerate() {
            for &other in &calls[..index] {
                assert_ne!(encoded(call), encoded(other), "{call:?} and {other:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "expected a scalar UInt, but found Some(Bool(true))")]
    fn scalars_of_another_kind_are_refused() {
        u64::decode(&mut encoded(true).into_iter());
    }
}
