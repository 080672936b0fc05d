package packager

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
)

// wanted is a file that the sidecar's `files` or the manifest names, and what
// they say about it.
type wanted struct {
	path   string         // NFC, with slashes
	sha256 archive.Digest // zero: not given
	size   int64          // -1: not given
	by     Fault          // where it is named: File, Line, Col, Field, Excerpt
}

// list understands the local key `files`: names, or objects with name, sha256, size.
func (f *form) list(field string, v value) {
	if v.kind != array {
		f.wrongKind(field, v, "a list in [ ]", `Write ["rechnung.pdf"]`)
		return
	}
	f.listed = len(v.items) > 0
	seen := map[string]bool{}
	for i, item := range v.items {
		each := fmt.Sprintf("%s[%d]", field, i)
		w := wanted{size: -1}
		switch item.kind {
		case text:
			f.fileName(each, item, &w)
		case object:
			f.listedFile(each, item, &w)
		default:
			f.wrongKind(each, item, "a file's name in quotes", `Write ["rechnung.pdf"]`)
		}
		if w.path == "" {
			continue
		}
		if seen[fold(w.path)] {
			f.fault(item.at, each, "a file is named twice", showName(w.path)+" is named a second time", "Delete one of the two")
			continue
		}
		seen[fold(w.path)] = true
		w.by = Fault{File: f.name, Field: each}
		if i < maxFaults { // a place costs a walk through the file
			w.by.Line, w.by.Col = position(f.src, item.at)
			w.by.Excerpt = excerptAt(f.src, item.at)
		}
		f.wanted = append(f.wanted, w)
	}
}

func (f *form) listedFile(each string, v value, w *wanted) {
	for _, m := range v.members {
		switch m.key {
		case "name":
			f.fileName(each+".name", m.value, w)
		case "sha256":
			var s string
			if f.text(each+".sha256", m.value, &s) {
				d, err := archive.ParseDigest(s)
				if err != nil {
					f.fault(m.value.at, each+".sha256", "files not understood", "is not a SHA-256 of 64 hexadecimal digits", "Copy it again, or leave it out")
				}
				w.sha256 = d
			}
		case "size":
			n, ok := wholeNumber(m.value)
			if !ok {
				f.wrongKind(each+".size", m.value, "a number of bytes", "Write it like 48213, or leave it out")
			}
			w.size = n
		default:
			f.unknown(m.at, each+"."+m.key, m.key, []string{"name", "sha256", "size"})
		}
	}
	if w.path == "" && !f.faulty["files"] {
		f.fault(v.at, each+".name", "files not understood", "is missing", `Write {"name": "rechnung.pdf"}`)
	}
}

func wholeNumber(v value) (int64, bool) {
	var n int64
	if v.kind != number || len(v.text) > 15 || strings.Trim(v.text, digits) != "" {
		return -1, false
	}
	for _, c := range v.text {
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// fileName takes the name of a file below the folder; Windows' separators are understood.
func (f *form) fileName(field string, v value, w *wanted) {
	var s string
	if !f.text(field, v, &s) {
		return
	}
	p, ok := cleanPath(s)
	if !ok {
		f.fault(v.at, field, "files not understood", `"`+showName(s)+`" is not the name of a file in this folder`, "Write its name as it stands in the folder, like rechnung.pdf")
		return
	}
	w.path = p
}

// cleanPath brings a named path into the form of the listing's.
func cleanPath(s string) (string, bool) {
	p := strings.TrimPrefix(strings.ReplaceAll(norm.NFC.String(s), `\`, "/"), "./")
	ok := fs.ValidPath(p) && p != "." && !strings.ContainsFunc(p, unicode.IsControl)
	return p, ok
}

// readManifest understands lines of "sha256  name", as sha256sum writes them.
func readManifest(name string, src []byte) (all []wanted, faults []Fault) {
	if text, advice := unreadable(src); text != "" {
		if text == "is empty" {
			advice = "Write it again with sha256sum, or delete it"
		}
		return nil, []Fault{{File: name, Brief: "manifest unreadable", Text: text, Advice: advice}}
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	seen := map[string]bool{}
	n := 0
	for line := range bytes.Lines(src) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		by := Fault{File: name, Line: n, Col: 1, Excerpt: excerptAt(line, 0)}
		w, ok := manifestLine(string(line))
		switch {
		case !ok:
			by.Brief, by.Text, by.Advice = "manifest unreadable", "this line is not a SHA-256, two spaces and a file's name", "Write the manifest again with sha256sum"
			faults = append(faults, by)
		case seen[fold(w.path)]:
			by.Brief, by.Text, by.Advice = "a file is named twice", showName(w.path)+" is named a second time", "Delete one of the two lines"
			faults = append(faults, by)
		default:
			seen[fold(w.path)] = true
			w.by = by
			all = append(all, w)
		}
		if len(all) > maxFiles+10 || len(faults) > maxFaults {
			break
		}
	}
	return all, faults
}

func manifestLine(line string) (wanted, bool) {
	if len(line) < 67 || !utf8.ValidString(line) || line[64] != ' ' || line[65] != ' ' && line[65] != '*' {
		return wanted{}, false
	}
	d, err := archive.ParseDigest(line[:64])
	p, ok := cleanPath(line[66:])
	return wanted{path: p, sha256: d, size: -1}, ok && err == nil
}

// lists are what is named, by the folded path.
type lists map[string][]wanted

// demand joins what the sidecar and the manifest name.
func demand(all ...[]wanted) lists {
	m := lists{}
	for _, ws := range all {
		for _, w := range ws {
			m[fold(w.path)] = append(m[fold(w.path)], w)
		}
	}
	return m
}

// missing returns what is named and not there, in the order of the lists.
func (l *listing) missing(all []wanted) (gone []wanted) {
	have := map[string]bool{}
	for _, f := range l.all() {
		have[fold(f.path)] = true
	}
	for _, w := range all {
		if !have[fold(w.path)] {
			gone = append(gone, w)
			have[fold(w.path)] = true // told once
		}
	}
	return gone
}

// differs compares a file that was read with what the lists say about it.
func (m lists) differs(f archive.File) []Fault {
	var faults []Fault
	for _, w := range m[fold(f.Path)] {
		said := ""
		switch {
		case w.size >= 0 && w.size != f.Size:
			said = fmt.Sprintf("the size of %s is %d, not %d", showName(f.Path), f.Size, w.size)
		case !w.sha256.IsZero() && w.sha256 != f.SHA256:
			said = fmt.Sprintf("%s is not the file that is meant: its SHA-256 begins with %s, not with %s",
				showName(f.Path), f.SHA256.String()[:8], w.sha256.String()[:8])
		default:
			continue
		}
		x := w.by
		if x.Field == "" {
			x.Field = path.Base(f.Path)
		}
		x.Brief, x.Text, x.Advice = "a file differs from the list", said, "Copy "+showName(path.Base(f.Path))+" into the folder again"
		faults = append(faults, x)
	}
	return faults
}
