/*
 * Runs a system-call filter as the kernel would: the part of classic BPF that seccomp
 * takes. A test that compares it with the table must not share a line with what compiled
 * the table.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BPF_WRONG = 1 }; /* no action of seccomp's has this value */

struct bpf_machine {
    const struct sock_filter *program;
    size_t n, at;
    uint32_t a, x, memory[BPF_MEMWORDS];
    const struct seccomp_data *data;
};

static inline bool
bpf_load(struct bpf_machine *m, const struct sock_filter *i)
{
    uint32_t *to = BPF_CLASS(i->code) == BPF_LD ? &m->a : &m->x;
    if (BPF_MODE(i->code) == BPF_IMM)
        *to = i->k;
    else if (BPF_MODE(i->code) == BPF_MEM && i->k < BPF_MEMWORDS)
        *to = m->memory[i->k];
    else if (i->code == (BPF_LD | BPF_W | BPF_ABS) && i->k % 4 == 0 &&
             i->k < sizeof(*m->data))
        memcpy(to, (const char *)m->data + i->k, sizeof(*to));
    else
        return false;
    return true;
}

static inline bool
bpf_alu(struct bpf_machine *m, const struct sock_filter *i)
{
    uint32_t by = BPF_SRC(i->code) == BPF_X ? m->x : i->k;
    if (BPF_OP(i->code) == BPF_AND)
        m->a &= by;
    else if (BPF_OP(i->code) == BPF_OR)
        m->a |= by;
    else
        return false; /* libseccomp makes no others */
    return true;
}

static inline bool
bpf_jump(struct bpf_machine *m, const struct sock_filter *i)
{
    uint32_t by = BPF_SRC(i->code) == BPF_X ? m->x : i->k;
    bool holds;
    if (BPF_OP(i->code) == BPF_JA) {
        m->at += i->k;
        return true;
    }
    if (BPF_OP(i->code) == BPF_JEQ)
        holds = m->a == by;
    else if (BPF_OP(i->code) == BPF_JGT)
        holds = m->a > by;
    else if (BPF_OP(i->code) == BPF_JGE)
        holds = m->a >= by;
    else if (BPF_OP(i->code) == BPF_JSET)
        holds = (m->a & by) != 0;
    else
        return false;
    m->at += holds ? i->jt : i->jf;
    return true;
}

/* The action, or BPF_WRONG for a program that the kernel would not have taken. */
static inline uint32_t
bpf_run(const struct sock_filter *program, size_t n, const struct seccomp_data *data)
{
    struct bpf_machine m = {.program = program, .n = n, .data = data};
    while (m.at < n) {
        const struct sock_filter *i = &program[m.at++];
        bool good = true;
        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
        case BPF_LDX:
            good = bpf_load(&m, i);
            break;
        case BPF_ST:
            good = i->k < BPF_MEMWORDS;
            if (good)
                m.memory[i->k] = m.a;
            break;
        case BPF_ALU:
            good = bpf_alu(&m, i);
            break;
        case BPF_JMP:
            good = bpf_jump(&m, i);
            break;
        case BPF_RET:
            return BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
        case BPF_MISC:
            good = false;
            break;
        default:
            good = false;
        }
        if (!good)
            return BPF_WRONG;
    }
    return BPF_WRONG;
}
