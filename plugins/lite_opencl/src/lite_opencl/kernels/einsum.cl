// Sums of products of any number of tensors: one work item for each element of the result, one iteration for each
// combination of the indices that are summed. FACTORS is the product for an element (row) and a combination (column);
// OPERANDS declares the tensors and the strides that it needs.

KERNEL void einsum(OUTPUT(Y_TYPE, y), const int elements, const int terms OPERANDS EPILOGUE_PARAMETERS) {
    const int row = get_global_id(0);
    if (row >= elements) return;
    SUM sum = 0;
    for (int column = 0; column < terms; ++column) sum += FACTORS;
    STORE_Y(POINTER(y), row, EPILOGUE(sum, row, 0));
}
