package packager

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// listedFile is a file that the sidecar's `files` or the manifest names, and what they say about it.
type listedFile struct {
	path   string         // NFC, with slashes
	sha256 archive.Digest // zero: not given
	size   int64          // -1: not given
	by     Fault          // where it is named: File, Line, Col, Field, Excerpt
}

// readFilesField understands the local key `files`: names, or objects with name, sha256, size.
func (f *sidecarReader) readFilesField(field string, v *strictjson.Value) {
	if v.Kind != strictjson.List {
		f.addWrongKind(field, v, "a list in [ ]", `Write ["rechnung.pdf"]`)
		return
	}
	f.hasFilesField = len(v.Items) > 0
	seen := map[string]bool{}
	for i, item := range v.Items {
		each := fmt.Sprintf("%s[%d]", field, i)
		w := listedFile{size: -1}
		switch item.Kind {
		case strictjson.Text:
			f.readFileName(each, item, &w)
		case strictjson.Object:
			f.readListedFile(each, item, &w)
		default:
			f.addWrongKind(each, item, "a file's name in quotes", `Write ["rechnung.pdf"]`)
		}
		if w.path == "" {
			continue
		}
		if seen[archive.FoldName(w.path)] {
			f.addFault(item.At, each, "a file is named twice", showName(w.path)+" is named a second time", "Delete one of the two")
			continue
		}
		seen[archive.FoldName(w.path)] = true
		w.by = Fault{File: f.name, Field: each}
		// Finding a line costs a walk through the sidecar.
		if i < maxFaults {
			w.by.Line, w.by.Col = strictjson.Place(f.src, item.At)
			w.by.Excerpt = excerptAt(f.src, item.At)
		}
		f.listedFiles = append(f.listedFiles, w)
	}
}

func (f *sidecarReader) readListedFile(each string, v *strictjson.Value, w *listedFile) {
	for _, m := range v.Members {
		switch m.Key {
		case "name":
			f.readFileName(each+".name", m.Value, w)
		case "sha256":
			var s string
			if f.readText(each+".sha256", m.Value, &s) {
				d, err := archive.ParseDigest(s)
				if err != nil {
					f.addFault(m.Value.At, each+".sha256", "files not understood", "is not a SHA-256 of 64 hexadecimal digits", "Copy it again, or leave it out")
				}
				w.sha256 = d
			}
		case "size":
			n, ok := wholeNumber(m.Value)
			if !ok {
				f.addWrongKind(each+".size", m.Value, "a number of bytes", "Write it like 48213, or leave it out")
			}
			w.size = n
		default:
			f.addUnknownField(m.At, each+"."+m.Key, m.Key, []string{"name", "sha256", "size"})
		}
	}
	if w.path == "" && !f.faulty["files"] {
		f.addFault(v.At, each+".name", "files not understood", "is missing", `Write {"name": "rechnung.pdf"}`)
	}
}

func wholeNumber(v *strictjson.Value) (int64, bool) {
	var n int64
	if v.Kind != strictjson.Number || len(v.Text) > 15 || strings.Trim(v.Text, "0123456789") != "" {
		return -1, false
	}
	for _, c := range v.Text {
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// readFileName takes the name of a file below the folder; Windows' separators are understood.
func (f *sidecarReader) readFileName(field string, v *strictjson.Value, w *listedFile) {
	var s string
	if !f.readText(field, v, &s) {
		return
	}
	p, ok := cleanPath(s)
	if !ok {
		f.addFault(v.At, field, "files not understood", `"`+showName(s)+`" is not the name of a file in this folder`, "Write its name as it stands in the folder, like rechnung.pdf")
		return
	}
	w.path = p
}

// cleanPath brings a listed path into the form of the listing's paths.
func cleanPath(s string) (string, bool) {
	p := strings.TrimPrefix(strings.ReplaceAll(norm.NFC.String(s), `\`, "/"), "./")
	ok := fs.ValidPath(p) && p != "." && !strings.ContainsFunc(p, unicode.IsControl)
	return p, ok
}

// readManifest understands lines of "sha256 name", as sha256sum writes them.
func readManifest(name string, src []byte) (all []listedFile, faults []Fault) {
	if text, advice := describeUnreadable(src); text != "" {
		if text == "is empty" {
			advice = "Write it again with sha256sum, or delete it"
		}
		return nil, []Fault{{File: name, Brief: "manifest unreadable", Text: text, Advice: advice}}
	}
	src = strictjson.WithoutMark(src)
	seen := map[string]bool{}
	n := 0
	for line := range bytes.Lines(src) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		by := Fault{File: name, Line: n, Col: 1, Excerpt: excerptAt(line, 0)}
		w, ok := parseManifestLine(string(line))
		switch {
		case !ok:
			by.Brief, by.Text, by.Advice = "manifest unreadable", "this line is not a SHA-256, two spaces and a file's name", "Write the manifest again with sha256sum"
			faults = append(faults, by)
		case seen[archive.FoldName(w.path)]:
			by.Brief, by.Text, by.Advice = "a file is named twice", showName(w.path)+" is named a second time", "Delete one of the two lines"
			faults = append(faults, by)
		default:
			seen[archive.FoldName(w.path)] = true
			w.by = by
			all = append(all, w)
		}
		if len(all) > maxFiles+10 || len(faults) > maxFaults {
			break
		}
	}
	return all, faults
}

func parseManifestLine(line string) (listedFile, bool) {
	if len(line) < 67 || !utf8.ValidString(line) || line[64] != ' ' || line[65] != ' ' && line[65] != '*' {
		return listedFile{}, false
	}
	d, err := archive.ParseDigest(line[:64])
	p, ok := cleanPath(line[66:])
	return listedFile{path: p, sha256: d, size: -1}, ok && err == nil
}

// listsByName holds the listed files by folded path.
type listsByName map[string][]listedFile

// groupByName joins what the sidecar and the manifest list.
func groupByName(all ...[]listedFile) listsByName {
	m := listsByName{}
	for _, ws := range all {
		for _, w := range ws {
			m[archive.FoldName(w.path)] = append(m[archive.FoldName(w.path)], w)
		}
	}
	return m
}

// findMissing returns what is listed and not there, in the order of the lists.
func (l *listing) findMissing(all []listedFile) (gone []listedFile) {
	have := map[string]bool{}
	for _, f := range l.allFiles() {
		have[archive.FoldName(f.path)] = true
	}
	for _, w := range all {
		if !have[archive.FoldName(w.path)] {
			gone = append(gone, w)
			have[archive.FoldName(w.path)] = true // reported once
		}
	}
	return gone
}

// compareFile compares a file that was read with what the lists say about it.
func (m listsByName) compareFile(f archive.File) []Fault {
	var faults []Fault
	for _, w := range m[archive.FoldName(f.Path)] {
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
		x.Field = cmp.Or(x.Field, path.Base(f.Path))
		x.Brief, x.Text, x.Advice = "a file differs from the list", said, "Copy "+showName(path.Base(f.Path))+" into the folder again"
		faults = append(faults, x)
	}
	return faults
}
