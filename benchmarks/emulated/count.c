/* Plugin of qemu's user mode that counts the instructions of the emulated program.

   The program asks for the count: getpriority(MARK, tag) is an error for the system, and the plugin writes a line
   "tag count" to the file of its argument out=FILE. qemu translates code in blocks that run from their first
   instruction to their last, so that one addition for each executed block is enough. Of several threads, only one may
   be busy between two marks, since the additions are not atomic.

   The declarations are those of qemu-plugin.h, version 1 of the interface: qemu 4.2 to 8.2. */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MARK 0x4c495445u
#define SYS_GETPRIORITY 141 /* 64-bit ARM Linux */
#define ADD_IMMEDIATE 0     /* QEMU_PLUGIN_INLINE_ADD_U64 */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *where, uint64_t number);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
typedef void (*on_syscall)(plugin_id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t, uint64_t);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, on_syscall);

EXPORT int qemu_plugin_version = 1;

static uint64_t executed;
static FILE *out;

static void on_translated(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_IMMEDIATE, &executed, qemu_plugin_tb_n_insns(block));
}

static void on_call(plugin_id id, unsigned cpu, int64_t number, uint64_t which, uint64_t tag, uint64_t a3, uint64_t a4,
                    uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)cpu, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number == SYS_GETPRIORITY && (uint32_t)which == MARK) {
        fprintf(out, "%" PRIu32 " %" PRIu64 "\n", (uint32_t)tag, executed);
        fflush(out);
    }
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments)
{
    (void)info;
    if (count != 1 || strncmp(arguments[0], "out=", 4) != 0 || !(out = fopen(arguments[0] + 4, "w"))) {
        fprintf(stderr, "count: give the file to write to: -plugin count.so,out=FILE\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    return 0;
}
