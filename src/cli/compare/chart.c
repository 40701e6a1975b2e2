/* Parts of figures: see chart_priv.h. */
#include "cli/compare/chart_priv.h"
#include "cli/compare/markup.h"

void chart_begin(struct chart *chart, double width, double height, const char *title) {
    chart->number++;
    fprintf(chart->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" aria-labelledby=\"t%u d%u\">\n"
            "<title id=\"t%u\">",
            width, height, chart->number, chart->number, chart->number);
    markup_text(chart->out, title);
    fprintf(chart->out, "</title>\n<desc id=\"d%u\">", chart->number);
}

void chart_described(struct chart *chart) { fprintf(chart->out, "</desc>\n"); }

void chart_end(struct chart *chart) { fprintf(chart->out, "</svg>\n"); }

void chart_line(struct chart *chart, const char *kind, double x1, double y1, double x2, double y2) {
    fprintf(chart->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind, x1, y1, x2, y2);
}

void chart_words(struct chart *chart, const char *kind, const char *anchor, double x, double y, const char *words) {
    fprintf(chart->out, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">", kind, anchor, x, y);
    markup_text(chart->out, words);
    fprintf(chart->out, "</text>\n");
}
