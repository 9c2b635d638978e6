/* told_lines.h - lines of events.jsonl for the tests of who looks at a run from outside. */
#ifndef STK_TESTS_TOLD_LINES_H
#define STK_TESTS_TOLD_LINES_H

#define START_LINE                                                                         \
    "{\"t\": 0.1, \"event\": \"start\", \"model\": \"resnet18\", \"data\": \"pictures\", " \
    "\"device\": \"cuda:0\", \"device_name\": \"NVIDIA H200\", \"precision\": \"fp16\", "  \
    "\"img_size\": 224, \"batch\": 128, \"workers\": 8, \"prefetch\": 4, \"folds\": 1, "   \
    "\"test_images\": 100, \"budget_s\": 660}\n"
#define STEP_LINE(t, step, loss)                                                              \
    "{\"t\": " #t ", \"event\": \"step\", \"fold\": 0, \"epoch\": 3, \"epochs\": 10, "        \
    "\"step\": " #step ", \"steps\": 100, \"loss\": " #loss ", \"acc1\": 61.5, \"lr\": 0.1, " \
    "\"images_per_second\": 2900, \"wait_fraction\": 0.46, \"left_s\": 200}\n"
#define EPOCH_LINE(t, epoch, acc1, best)                                         \
    "{\"t\": " #t ", \"event\": \"epoch\", \"fold\": 0, \"epoch\": " #epoch ", " \
    "\"epochs\": 10, \"train_loss\": 1.5, \"val_acc1\": " #acc1 ", \"best\": " #best "}\n"
#define SAMPLE_LINE(t)                                                                \
    "{\"t\": " #t ", \"event\": \"sample\", \"gpu_util\": 54, \"sm_activity\": 38, "  \
    "\"gpu_memory_used\": 18300000000, \"gpu_memory_total\": 24000000000, "           \
    "\"gpu_power_w\": 310, \"gpu_temperature_c\": 61, \"gpu_throttled\": \"power\", " \
    "\"cpu\": 97, \"cpu_own\": 95, \"iowait\": 1, \"resident\": 3000000000, "         \
    "\"images_per_second\": 2850, \"wait_fraction\": 0.44, \"batches_ready\": 3, "    \
    "\"slots\": 32, \"workers\": 8, \"cores\": [100, 90, 80, 0]}\n"
#define VERDICT_LINE(t, words)                                                       \
    "{\"t\": " #t ", \"event\": \"verdict\", \"name\": \"decode-bound\", \"text\": " \
    "\"" words "\", \"fine\": false}\n"
#define DECISION_LINE(t)                                                           \
    "{\"t\": " #t ", \"event\": \"decision\", \"what\": \"workers 16\", \"why\": " \
    "\"the queue is empty\"}\n"
#define WARNING_LINE(t) "{\"t\": " #t ", \"event\": \"warning\", \"text\": \"it is odd\"}\n"
#define SUBMISSION_LINE(t) \
    "{\"t\": " #t ", \"event\": \"submission\", \"path\": \"x\", \"status\": \"prior\"}\n"
#define STOP_LINE(t)                                                                  \
    "{\"t\": " #t ", \"event\": \"stop\", \"status\": \"partial\", \"stop_reason\": " \
    "\"signal\", \"best_acc1\": 70, \"used_s\": 99, \"submission\": \"submission.csv\"}\n"

#endif
