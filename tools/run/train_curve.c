#include "train_curve.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

// The picture, in pixels, and the area of the curve within it.
#define WIDTH 720
#define HEIGHT 400
#define LEFT 80
#define TOP 20
#define CURVE_WIDTH 620
#define CURVE_HEIGHT 330
#define COLUMNS 600 // maximum number of points of the line
#define N_TICKS 5

struct scale {
    double low, high;
};

// Returns the mean of the finite losses of column i; NaN if there is none.
static double column(const double *losses, size_t n, size_t n_columns, size_t i) {
    size_t from = (size_t)((double)n * (double)i / (double)n_columns);
    size_t to = (size_t)((double)n * (double)(i + 1) / (double)n_columns);
    if (to <= from) to = from + 1;
    double mean = 0;
    size_t count = 0;
    // A running mean: the sum of very large losses would not be finite.
    for (size_t k = from; k < to && k < n; k++)
        if (isfinite(losses[k])) {
            count++;
            mean += losses[k] / (double)count - mean / (double)count;
        }
    return count ? mean : (double)NAN;
}

static struct scale range_of(const double *losses, size_t n, size_t n_columns) {
    struct scale s = {INFINITY, -INFINITY};
    for (size_t i = 0; i < n_columns; i++) {
        double y = column(losses, n, n_columns, i);
        if (y < s.low) s.low = y;
        if (y > s.high) s.high = y;
    }
    if (!(s.low <= s.high)) return (struct scale){0, 1}; // no finite loss
    if (s.low == s.high) {
        double margin = s.low == 0 ? 1 : fabs(s.low) / 2;
        s.low -= margin;
        s.high += margin;
    }
    // The distance of the largest numbers of both signs is not finite.
    if (s.low < -DBL_MAX / 4) s.low = -DBL_MAX / 4;
    if (s.high > DBL_MAX / 4) s.high = DBL_MAX / 4;
    return s;
}

static double height(const struct scale *s, double y) {
    double part = (y - s->low) / (s->high - s->low);
    if (!(part >= 0)) part = 0;
    if (part > 1) part = 1;
    return TOP + CURVE_HEIGHT * (1 - part);
}

static void draw_axes(const struct scale *s, uint64_t first, size_t n, struct strbuf *out) {
    strbuf_printf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, TOP,
                  TOP + CURVE_HEIGHT, LEFT + CURVE_WIDTH);
    for (int i = 0; i <= N_TICKS; i++) {
        double y = s->low + (s->high - s->low) * i / N_TICKS;
        double at = TOP + CURVE_HEIGHT * (1 - (double)i / N_TICKS);
        double x = LEFT + (double)CURVE_WIDTH * i / N_TICKS;
        uint64_t step = first + (uint64_t)((double)(n - 1) * i / N_TICKS);
        strbuf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", LEFT - 6,
                      at + 4, y);
        strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%llu</text>\n", x,
                      TOP + CURVE_HEIGHT + 18, (unsigned long long)step);
    }
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
                  LEFT + CURVE_WIDTH / 2, HEIGHT - 6);
}

void train_curve(const double *losses, size_t n, uint64_t first, struct strbuf *out) {
    size_t n_columns = n < COLUMNS ? n : COLUMNS;
    struct scale s = range_of(losses, n, n_columns);
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                  "<title>loss of each step</title>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    if (n) draw_axes(&s, first, n, out);
    strbuf_printf(out, "<path fill=\"none\" stroke=\"#1f5fbf\" stroke-width=\"1.5\" d=\"");
    bool is_drawing = false;
    for (size_t i = 0; i < n_columns; i++) {
        double y = column(losses, n, n_columns, i);
        double part = n_columns > 1 ? (double)i / (double)(n_columns - 1) : 0.5;
        if (!isfinite(y)) {
            is_drawing = false;
            continue;
        }
        strbuf_printf(out, "%c%.1f %.1f", is_drawing ? 'L' : 'M', LEFT + CURVE_WIDTH * part,
                      height(&s, y));
        // A single point is visible as a short line.
        if (!is_drawing) strbuf_printf(out, "h0.5");
        is_drawing = true;
    }
    strbuf_printf(out, "\"/>\n</svg>\n");
}
