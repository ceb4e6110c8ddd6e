"""In-place methods and functions that have an out-of-place twin of the same arguments, type and meaning."""

from __future__ import annotations

# Comparisons and logical_* are left out (in place they keep the dtype, out of place they give bool), as are
# resizing, views and random fills.
METHODS = frozenset(
    """
    abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ arccos_ arccosh_
    arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_
    bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_
    ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ copysign_ cos_ cosh_ cumprod_ cumsum_
    deg2rad_ digamma_ div_ divide_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_ fix_ floor_ floor_divide_
    fmod_ frac_ gcd_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_ index_fill_
    index_put_ index_reduce_ lcm_ ldexp_ lerp_ lgamma_ log10_ log1p_ log2_ log_ logit_ masked_fill_
    masked_scatter_ mul_ multiply_ mvlgamma_ nan_to_num_ neg_ negative_ nextafter_ polygamma_ pow_
    put_ rad2deg_ reciprocal_ relu_ remainder_ renorm_ round_ rsqrt_ scatter_ scatter_add_
    scatter_reduce_ sgn_ sigmoid_ sign_ sin_ sinc_ sinh_ sqrt_ square_ sub_ subtract_ tan_ tanh_
    tril_ triu_ true_divide_ trunc_ xlogy_
    """.split()  # noqa: SIM905
)

TORCH_FUNCTIONS = frozenset(
    """
    abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_
    asinh_ atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_
    deg2rad_ dropout_ erf_ erfc_ exp2_ exp_ expm1_ feature_alpha_dropout_ feature_dropout_ fix_
    floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_
    negative_ rad2deg_ reciprocal_ relu_ round_ rrelu_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_
    square_ tan_ tanh_ threshold_ trunc_ xlogy_
    """.split()  # noqa: SIM905
)

FUNCTIONAL = frozenset(
    """
    celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_
    """.split()  # noqa: SIM905
)

FUNCTION_MODULES = {
    "torch": TORCH_FUNCTIONS,
    "F": FUNCTIONAL,
    "functional": FUNCTIONAL,
    "nn.functional": FUNCTIONAL,
    "torch.nn.functional": FUNCTIONAL,
}

# Methods whose result may be the same memory, so that a write to it is a write to the original.
VIEW_METHODS = frozenset(
    """
    as_strided bfloat16 chunk contiguous cpu cuda detach detach_ diagonal double dsplit expand
    expand_as flatten float half hsplit int long movedim narrow permute ravel requires_grad_ reshape
    reshape_as select split squeeze swapaxes swapdims t tensor_split to transpose type_as unbind
    unflatten unfold unsqueeze view view_as vsplit
    """.split()  # noqa: SIM905
)

ALWAYS_VIEWS = frozenset(
    """
    detach diagonal expand expand_as movedim narrow permute select squeeze swapaxes swapdims t
    transpose unfold unsqueeze view view_as
    """.split()  # noqa: SIM905
)

VIEW_PROPERTIES = frozenset(["data", "T", "mT", "H", "mH", "real", "imag"])
