/* The gradient of gray_scott.py, its adjoint written by hand, with two-level checkpoints.
 *
 * A field lies in rows of a length that keeps every row aligned to a cache line. One column on
 * either side and one row above and below repeat the other side, so that no index wraps around.
 * The reverse of a step is in gather form: each cotangent is read from its neighbours and written
 * once.
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LINE 8 /* doubles in a cache line */
#define DIFFUSION_U 0.16
#define DIFFUSION_V 0.08

typedef struct {
    size_t size, stride, field; /* cells of a side, of a row and of a field, borders included */
} Grid;

typedef struct {
    double *u, *v;
} State;

typedef struct {
    double feed, kill;
} Rates;

static Grid grid_of(size_t size)
{
    size_t stride = (size + LINE - 1) / LINE * LINE + 2 * LINE;
    return (Grid){size, stride, (size + 2) * stride};
}

static double *aligned(size_t n_doubles)
{
    return aligned_alloc(LINE * sizeof(double), n_doubles * sizeof(double));
}

static State state_at(double *memory, Grid g, size_t slot)
{
    double *u = memory + 2 * g.field * slot;
    return (State){u, u + g.field};
}

/* The first interior cell of row i, counted without the border. */
static size_t row(Grid g, size_t i) { return (i + 1) * g.stride + LINE; }

static void wrap_columns(Grid g, double *w, size_t i)
{
    double *cells = w + row(g, i);
    cells[-1] = cells[g.size - 1];
    cells[g.size] = cells[0];
}

static void wrap_rows(Grid g, double *w)
{
    memcpy(w, w + g.size * g.stride, g.stride * sizeof(double));
    memcpy(w + (g.size + 1) * g.stride, w + g.stride, g.stride * sizeof(double));
}

#define LAPLACIAN(w, j) (w[j - n] + w[j + n] + w[j - 1] + w[j + 1] - 4.0 * w[j])

static void step_row(ptrdiff_t size, ptrdiff_t n, const double *restrict u,
                     const double *restrict v, double *restrict new_u, double *restrict new_v,
                     Rates r)
{
    u = __builtin_assume_aligned(u, 64), v = __builtin_assume_aligned(v, 64);
    new_u = __builtin_assume_aligned(new_u, 64), new_v = __builtin_assume_aligned(new_v, 64);
    for (ptrdiff_t j = 0; j < size; j++) {
        double reaction = u[j] * v[j] * v[j];
        new_u[j] = u[j] + (DIFFUSION_U * LAPLACIAN(u, j) - reaction + r.feed * (1.0 - u[j]));
        new_v[j] = v[j] + (DIFFUSION_V * LAPLACIAN(v, j) + reaction - (r.feed + r.kill) * v[j]);
    }
}

static void step(Grid g, State new, State old, Rates r)
{
    for (size_t i = 0; i < g.size; i++) {
        size_t k = row(g, i);
        step_row(g.size, g.stride, old.u + k, old.v + k, new.u + k, new.v + k, r);
        wrap_columns(g, new.u, i);
        wrap_columns(g, new.v, i);
    }
    wrap_rows(g, new.u);
    wrap_rows(g, new.v);
}

/* The cotangents new_u, new_v of u, v from those of the successor; adds to those of the rates. */
static Rates reverse_row(ptrdiff_t size, ptrdiff_t n, const double *restrict u,
                         const double *restrict v, const double *restrict ct_u,
                         const double *restrict ct_v, double *restrict new_u,
                         double *restrict new_v, Rates r)
{
    double feed_ct = 0.0, kill_ct = 0.0;
    double keep_u = 1.0 - r.feed, keep_v = 1.0 - r.feed - r.kill;
    u = __builtin_assume_aligned(u, 64), v = __builtin_assume_aligned(v, 64);
    ct_u = __builtin_assume_aligned(ct_u, 64), ct_v = __builtin_assume_aligned(ct_v, 64);
    new_u = __builtin_assume_aligned(new_u, 64), new_v = __builtin_assume_aligned(new_v, 64);
    for (ptrdiff_t j = 0; j < size; j++) {
        double reaction_ct = (ct_v[j] - ct_u[j]) * v[j];
        new_u[j] = keep_u * ct_u[j] + DIFFUSION_U * LAPLACIAN(ct_u, j) + reaction_ct * v[j];
        new_v[j] = keep_v * ct_v[j] + DIFFUSION_V * LAPLACIAN(ct_v, j) + 2.0 * reaction_ct * u[j];
        feed_ct += ct_u[j] * (1.0 - u[j]);
        kill_ct += ct_v[j] * v[j];
    }
    return (Rates){feed_ct - kill_ct, -kill_ct};
}

static void step_adjoint(Grid g, State new, State ct, State old, Rates r, Rates *rates_ct)
{
    for (size_t i = 0; i < g.size; i++) {
        size_t k = row(g, i);
        Rates more = reverse_row(g.size, g.stride, old.u + k, old.v + k, ct.u + k, ct.v + k,
                                 new.u + k, new.v + k, r);
        rates_ct->feed += more.feed;
        rates_ct->kill += more.kill;
        wrap_columns(g, new.u, i);
        wrap_columns(g, new.v, i);
    }
    wrap_rows(g, new.u);
    wrap_rows(g, new.v);
}

static void with_border(Grid g, double *out, const double *w)
{
    for (size_t i = 0; i < g.size; i++) {
        memcpy(out + row(g, i), w + i * g.size, g.size * sizeof(double));
        wrap_columns(g, out, i);
    }
    wrap_rows(g, out);
}

static void without_border(Grid g, double *out, const double *w)
{
    for (size_t i = 0; i < g.size; i++)
        memcpy(out + i * g.size, w + row(g, i), g.size * sizeof(double));
}

/* The value; its cotangent goes to ct_v. */
static double misfit(Grid g, const double *v, const double *observed, double *ct_v)
{
    double value = 0.0;
    for (size_t i = 0; i < g.size; i++) {
        const double *restrict here = v + row(g, i), *restrict there = observed + i * g.size;
        double *restrict ct = ct_v + row(g, i);
        for (size_t j = 0; j < g.size; j++) {
            double difference = here[j] - there[j];
            value += difference * difference;
            ct[j] = 2.0 * difference;
        }
        wrap_columns(g, ct_v, i);
    }
    wrap_rows(g, ct_v);
    return value;
}

static size_t block_length(size_t length, size_t period, size_t block)
{
    size_t left = length - block * period;
    return left < period ? left : period;
}

/* Up to the last block, with a checkpoint at the start of each; `states` has room for two. */
static void forward(Grid g, double *checkpoints, double *states, size_t length, size_t period,
                    Rates r)
{
    size_t last = (length - 1) / period;
    for (size_t block = 0; block < last; block++) {
        State old = state_at(checkpoints, g, block);
        for (size_t i = 0; i + 1 < period; i++) { /* to and fro between two states */
            State new = state_at(states, g, i % 2);
            step(g, new, old, r);
            old = new;
        }
        step(g, state_at(checkpoints, g, block + 1), old, r);
    }
}

/* The states after each of a block's first `n_steps` steps; its start is the checkpoint. */
static void fill_block(Grid g, double *states, State start, size_t n_steps, Rates r)
{
    State old = start;
    for (size_t i = 0; i < n_steps; i++) {
        State new = state_at(states, g, i);
        step(g, new, old, r);
        old = new;
    }
}

/* Writes the cotangents of u, v (size x size) and of the rates; returns the value. */
double gray_scott_gradient(size_t size, size_t length, size_t period, const double *u,
                           const double *v, const double *rates, const double *observed,
                           double *u_ct, double *v_ct, double *rates_ct)
{
    Grid g = grid_of(size);
    size_t n_blocks = (length + period - 1) / period;
    size_t state = 2 * g.field;
    double *checkpoints = aligned(n_blocks * state);
    double *states = aligned((period > 2 ? period : 2) * state);
    double *cotangents = aligned(2 * state);
    Rates r = {rates[0], rates[1]}, sums = {0.0, 0.0};
    double value = 0.0;

    with_border(g, checkpoints, u);
    with_border(g, checkpoints + g.field, v);
    forward(g, checkpoints, states, length, period, r);
    State ct = state_at(cotangents, g, 0), new_ct = state_at(cotangents, g, 1);
    memset(ct.u, 0, g.field * sizeof(double));
    for (size_t block = n_blocks; block-- > 0;) {
        size_t stop = block_length(length, period, block);
        int is_last = block == n_blocks - 1;
        State start = state_at(checkpoints, g, block);
        fill_block(g, states, start, is_last ? stop : stop - 1, r);
        if (is_last)
            value = misfit(g, state_at(states, g, stop - 1).v, observed, ct.v);
        for (size_t i = stop; i-- > 0;) {
            State old = i ? state_at(states, g, i - 1) : start;
            step_adjoint(g, new_ct, ct, old, r, &sums);
            State swapped = ct;
            ct = new_ct;
            new_ct = swapped;
        }
    }
    without_border(g, u_ct, ct.u);
    without_border(g, v_ct, ct.v);
    rates_ct[0] = sums.feed;
    rates_ct[1] = sums.kill;
    free(checkpoints);
    free(states);
    free(cotangents);
    return value;
}
