# Writes a PostScript document of `pages` pages: text in three fonts, curves, shades and a picture on
# each. Always the same for the same number.
function next_random() { seed = (seed * 16807) % 2147483647; return seed }
function words(count,    i, line) {
    line = ""
    for (i = 0; i < count; i++) line = line sprintf("%s%x", i ? " " : "", next_random() % 1048576)
    return line
}
BEGIN {
    seed = 7
    split("Times-Roman Helvetica Courier-Bold", font, " ")
    print "%!PS-Adobe-3.0\n%%Pages: " pages
    for (page = 1; page <= pages; page++) {
        print "%%Page: " page " " page
        for (line = 0; line < 50; line++)
            printf "/%s findfont %d scalefont setfont 50 %d moveto (%s) show\n", font[1 + next_random() % 3],
                8 + next_random() % 3, 780 - 14 * line, words(9)
        for (curve = 0; curve < 60; curve++) {
            printf "0.%d 0.%d 0.%d setrgbcolor %d %d moveto", next_random() % 10, next_random() % 10,
                next_random() % 10, next_random() % 600, next_random() % 800
            for (i = 0; i < 6; i++) printf " %d", next_random() % 600
            print " curveto stroke"
        }
        print "gsave 60 60 translate 200 100 scale 32 16 8 [32 0 0 16 0 0] {<"
        for (i = 0; i < 512; i++) printf "%02x%s", next_random() % 256, i % 32 == 31 ? "\n" : ""
        print ">} image grestore showpage"
    }
    print "%%EOF"
}
