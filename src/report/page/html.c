/*
 * html.c - the style of all pages, and their small pieces.
 *
 * The style stands in the page, and a policy in its head forbids everything else: a page that
 * somebody was sent opens no connection. Plots are SVG; in the dark their paper and inks change by
 * rules on the colours that canvas_svg.c writes.
 */
#include "report/page/html.h"

#include <math.h>

#include "report/text/text.h"

static const char style[] =
    ":root{color-scheme:light dark;--paper:#f4f5f7;--card:#ffffff;--ink:#26282b;--soft:#5c6167;"
    "--line:#dfe2e6;--good:#2f7d52;--bad:#b3452c;--mark:#3b6fb6}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#15171a;--card:#1e2125;--ink:#e4e6e9;"
    "--soft:#a3a9b0;--line:#383d44;--good:#6cc495;--bad:#ee8b6e;--mark:#7fa8e0}\n"
    "svg.plot rect[fill=\"#ffffff\"]{fill:#1e2125}svg.plot text[fill=\"#26282b\"]{fill:#e4e6e9}"
    "svg.plot text[fill=\"#6b7076\"]{fill:#a3a9b0}"
    "svg.plot polyline[stroke=\"#e6e8eb\"]{stroke:#33383e}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);line-height:1.45;"
    "font-family:system-ui,\"DejaVu Sans\",Helvetica,Arial,sans-serif;font-size:16px}\n"
    "main{max-width:1400px;margin:0 auto;padding:12px}\n"
    "h1{font-size:1.35rem;margin:.4rem 0;overflow-wrap:anywhere}\n"
    "h2{font-size:1.05rem;margin:0 0 .6rem}h3{font-size:.95rem;margin:1rem 0 .4rem}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:14px;margin:12px 0}\n"
    "p{margin:.3rem 0}.soft{color:var(--soft)}.lead{font-size:1.1rem;overflow-wrap:anywhere}\n"
    "#verdict{border-left:6px solid var(--soft)}#verdict.fine{border-left-color:var(--good)}"
    "#verdict.slow{border-left-color:var(--bad)}\n"
    ".grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))"
    "}\n"
    ".figures{display:grid;gap:10px;margin:0;"
    "grid-template-columns:repeat(auto-fill,minmax(min(100%,9.5rem),1fr))}\n"
    ".figures div{min-width:0}.figures dt{color:var(--soft);font-size:.8rem}"
    ".figures dd{margin:0;font-weight:600;overflow-wrap:anywhere}\n"
    "svg.plot{display:block;width:100%;height:auto;max-width:720px}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem}\n"
    "th,td{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;overflow-wrap:anywhere}th,td.n,#runs td,#attempts td{white-space:nowrap}\n"
    "#attempts td:last-child{white-space:normal;min-width:18rem}\n"
    "td.n,th.n{text-align:right}\n"
    "code{font-size:.88em;overflow-wrap:anywhere}summary{cursor:pointer;color:var(--mark)}\n"
    "ul,ol{margin:.3rem 0;padding-left:1.3rem}li{margin:.2rem 0;overflow-wrap:anywhere}\n"
    ".key{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.88rem}"
    ".key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}\n"
    ".pictures{display:grid;gap:12px;"
    "grid-template-columns:repeat(auto-fill,minmax(min(46%,9rem),1fr))}\n"
    "figure{margin:0;font-size:.8rem;min-width:0}figure img{width:100%;height:auto;"
    "border-radius:4px;display:block}figcaption{overflow-wrap:anywhere}\n";

void stk_page_put_text(stk_str *out, const char *text) {
    stk_report_append_markup(out, text != NULL ? text : STK_PAGE_UNKNOWN);
}

void stk_page_put_in(stk_str *out, const char *before, const char *text, const char *after) {
    stk_str_append(out, before);
    stk_page_put_text(out, text);
    stk_str_append(out, after);
}

void stk_page_begin(stk_str *out, const char *title) {
    stk_str_append(out,
                   "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "img-src data:; style-src 'unsafe-inline'\">\n"
                   "<link rel=\"icon\" href=\"data:,\">\n<title>");
    stk_page_put_text(out, title);
    stk_str_append(out, "</title>\n<style>\n");
    stk_str_append(out, style);
    stk_page_put_in(out, "</style>\n</head>\n<body>\n<main>\n<h1>", title, "</h1>\n");
}

void stk_page_end(stk_str *out) {
    stk_str_append(out, "</main>\n</body>\n</html>\n");
}

void stk_page_open_section(stk_str *out, const char *id, const char *heading) {
    stk_str_appendf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, heading);
}

void stk_page_close_section(stk_str *out) {
    stk_str_append(out, "</section>\n");
}

void stk_page_put_cell(stk_str *out, const char *text) {
    stk_page_put_in(out, "<td>", text, "</td>");
}

void stk_page_put_number_cell(stk_str *out, int decimals, double value) {
    if (isfinite(value)) {
        stk_str_appendf(out, "<td class=\"n\">%.*f</td>", decimals, value);
    } else {
        stk_str_append(out, "<td class=\"n\">" STK_PAGE_UNKNOWN "</td>");
    }
}
