/* fuzz_dicom.c - any bytes are a picture or a reason, and the whole square is filled: DICOM. */
#include "fuzz_pictures.h"

fuzz_plan fuzz_prepare(void) {
    return fuzz_plan_files(".dcm", 2000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    fuzz_channels(data, size);
    return 0;
}
