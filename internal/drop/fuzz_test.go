package drop

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// A place that is taken for one leads to the four folders of ours and no further.
func FuzzPlace_I19(f *testing.F) {
	for _, s := range []string{"_rejected/Huber 88", "_archived/2026-11/Müller", "_archived/../x", "_rejected/..", "_rejected//x", "/_rejected/x", "_duplicates/.", "_rejected/a/b", "_archived/2026-13/x", "_rejected/a\x00b", "_delivered/2026-11/scan7.pdf", "_delivered/scan7.pdf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		p, err := parsePlace(rel)
		if err != nil {
			return
		}
		if p.rel() != rel || path.Clean(rel) != rel || path.IsAbs(rel) || p.name == ".." || p.name == "." || p.name == "" || strings.ContainsAny(p.name, "/\x00") {
			t.Errorf("%q is taken for %+v", rel, p)
		}
		if first, _, _ := strings.Cut(rel, "/"); first != "_archived" && first != "_delivered" && first != "_rejected" && first != "_duplicates" {
			t.Errorf("%q leads elsewhere", rel)
		}
	})
}

// A second place of the same name is one name, fits a file system, and differs from the first.
func FuzzNumbered(f *testing.F) {
	f.Add("Müller 4711", uint8(2))
	f.Add(strings.Repeat("ü", 200), uint8(9))
	f.Add("a.b.c", uint8(1))
	f.Add("\xff\xfe", uint8(3))
	f.Fuzz(func(t *testing.T, name string, n uint8) {
		if name == "" || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			return
		}
		got := withNumber(name, int(n)+2)
		if len(got) > 255 || got == "" || got == name || strings.ContainsAny(got, "/\x00") || utf8.ValidString(name) && !utf8.ValidString(got) || got == withNumber(name, int(n)+3) {
			t.Errorf("%q: %q", name, got)
		}
	})
}
