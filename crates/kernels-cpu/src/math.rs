//! The elementary functions that are computed one number at a time: those of `std`, or of `libm` without `std`.
//!
//! `core` has none. The two may differ in the last bit.

macro_rules! functions {
    ($($name:ident: $libm:ident),*) => {$(
        #[inline]
        pub(crate) fn $name(x: f64) -> f64 {
            #[cfg(feature = "std")]
            {
                x.$name()
            }
            #[cfg(not(feature = "std"))]
            {
                libm::$libm(x)
            }
        }
    )*};
}
functions!(exp: exp, exp2: exp2, ln: log, round: round, sqrt: sqrt, tanh: tanh);
