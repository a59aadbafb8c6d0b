// Boxes and class scores of one head of YOLOv3: x [images, anchors * (5 + CLASSES), height, width] holds for each
// anchor the box (x, y, width, height), a confidence and the classes; with IOU_AWARE, one more channel for each anchor
// comes before all of them.
//
// One work item computes the box of one cell and anchor, and its scores: dimension 0 counts cells, which are neighbours
// in x, dimension 1 anchors, dimension 2 images.

#define LOGISTIC(v) ((X_COMPUTE)1 / ((X_COMPUTE)1 + exp(-(v))))
// The larger and the smaller of two numbers; NaN if either is NaN.
#define LARGER(a, b) ((a) != (a) || (a) >= (b) ? (a) : (b))
#define SMALLER(a, b) ((a) != (a) || (a) <= (b) ? (a) : (b))

KERNEL void yolo_box(OUTPUT(B_TYPE, boxes), OUTPUT(S_TYPE, scores), INPUT(X_TYPE, x), INPUT(int, image_sizes),
                     INPUT(int, anchor_sizes), const int images, const int anchors, const int height, const int width,
                     const X_COMPUTE threshold, const X_COMPUTE scale, const X_COMPUTE iou_factor,
                     const int downsampling) {
    const int cell = get_global_id(0);
    const int anchor = get_global_id(1);
    const int image = get_global_id(2);
    const int cells = height * width;
    if (cell >= cells || anchor >= anchors || image >= images) return;
#ifdef IOU_AWARE
    const int before = anchors;
#else
    const int before = 0;
#endif
    __global const X_TYPE* first = POINTER(x) + image * (before + anchors * (5 + CLASSES)) * cells + cell;
    __global const X_TYPE* head = first + (before + anchor * (5 + CLASSES)) * cells;
    const X_COMPUTE image_h = POINTER(image_sizes)[2 * image];
    const X_COMPUTE image_w = POINTER(image_sizes)[2 * image + 1];
    X_COMPUTE confidence = LOGISTIC(LOAD_X(head, 4 * cells));
#ifdef IOU_AWARE
    confidence = pow(confidence, 1 - iou_factor) * pow(LOGISTIC(LOAD_X(first, anchor * cells)), iou_factor);
#endif
    const bool is_sure = confidence >= threshold;

    const X_COMPUTE bias = (X_COMPUTE)-0.5f * (scale - 1);
    const X_COMPUTE center_x = (cell % width + LOGISTIC(LOAD_X(head, 0)) * scale + bias) * image_w / width;
    const X_COMPUTE center_y = (cell / width + LOGISTIC(LOAD_X(head, cells)) * scale + bias) * image_h / height;
    const X_COMPUTE half_w =
        exp(LOAD_X(head, 2 * cells)) * POINTER(anchor_sizes)[2 * anchor] * image_w / (downsampling * width) / 2;
    const X_COMPUTE half_h =
        exp(LOAD_X(head, 3 * cells)) * POINTER(anchor_sizes)[2 * anchor + 1] * image_h / (downsampling * height) / 2;
    X_COMPUTE left = center_x - half_w, top = center_y - half_h;
    X_COMPUTE right = center_x + half_w, bottom = center_y + half_h;
#ifdef CLIP
    left = LARGER(left, 0);
    top = LARGER(top, 0);
    right = SMALLER(right, image_w - 1);
    bottom = SMALLER(bottom, image_h - 1);
#endif
    const int box = (image * anchors + anchor) * cells + cell;
    STORE_B(POINTER(boxes), 4 * box, is_sure ? left : 0);
    STORE_B(POINTER(boxes), 4 * box + 1, is_sure ? top : 0);
    STORE_B(POINTER(boxes), 4 * box + 2, is_sure ? right : 0);
    STORE_B(POINTER(boxes), 4 * box + 3, is_sure ? bottom : 0);
    for (int c = 0; c < CLASSES; ++c) {
        const X_COMPUTE score = confidence * LOGISTIC(LOAD_X(head, (5 + c) * cells));
        STORE_S(POINTER(scores), box * CLASSES + c, is_sure ? score : 0);
    }
}
