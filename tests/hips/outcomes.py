"""Which of autograd's tests do not pass on ckad, by what they ask for."""

from __future__ import annotations

_LISTS = {
    "primitives, graphs, boxes or vector spaces of autograd's own": """
        test_logic: test_no_vjp_def test_no_jvp_def test_unimplemented_falseyness
        test_misc: test_const_graph test_const_graph_args
        test_tests: test_check_vjp_1st_order_fail test_check_vjp_2nd_order_fail
        test_vspaces: test_array_vspace test_array_vspace_0_dim test_array_vspace_complex
            test_list_vspace test_tuple_vspace test_dict_vspace test_mixed_vspace
        test_wrappers: test_deprecated_defgrad_wrapper test_deprecated_defvjp_wrapper
            test_deprecated_defvjp_is_zero_wrapper test_deprecated_quick_grad_check_wrapper
            test_wrapped_name_and_docs
    """,
    "functions of autograd that NumPy and SciPy do not have: its own where and convolve": """
        test_scipy: test_convolve_generalization test_convolve_ignore test_convolve_ignore_dot
        test_wrappers: test_custom_where test_custom_where_dtypes[int-True-1-2]
            test_custom_where_dtypes[float-True-3.0-4.0]
            test_custom_where_dtypes[float-False-1-2.0]
            test_custom_where_dtypes[list-True-x3-y3]
    """,
    "an error for what ckad computes": """
        test_fft: test_rfftn_odd_not_implemented
        test_graphs: test_assignment_raises_error
    """,
    "the gradient by an argument without numbers, which is an error here": """
        test_builtins: test_isinstance
    """,
    "attributes of arrays, of an argument that is a Python float": """
        test_numpy: test_scalar_array_box_attributes
    """,
    "an object of xarray after a traced number, or made of one": """
        test_ufunc_dispatch: test_grad_through_dataarray_binary_ufunc
            test_grad_through_box_times_dataarray_holding_box
    """,
    "element types of 16 and 128 bits, which ckad does not have": """
        test_wrappers: test_dtypes
    """,
    "a result whose type depends on numbers": """
        test_systematic: test_real_ic
    """,
    "a private function of NumPy that it has no more": """
        test_linalg: test_pinv
    """,
    "a square root of a real matrix that is complex": """
        test_scipy: test_sqrtm
    """,
}


def _expected() -> dict[str, str]:
    found = {}
    for reason, lists in _LISTS.items():
        module = ""
        for word in lists.split():
            if word.endswith(":"):
                module = word[:-1]
            else:
                found[f"{module}.{word}"] = reason
    return found


#: module and test -> why it does not pass
EXPECTED = _expected()
