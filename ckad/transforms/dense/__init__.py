"""Dense Jacobians and Hessians."""
