package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// recipe says what a data set is made of. Every folder has a sidecar and a marker, so that it is complete at once.
type recipe struct {
	docs  int
	xml   span // of each invoice
	pdf   span
	jpeg  span // scans
	pdf2  span // a second PDF
	csv   span
	scans int // of ten folders, so many have one; a second PDF and a table come in one of ten
}

// span is the least and the greatest size of a file in bytes; the zero span is no file.
type span struct{ min, max int }

// recipes are the data sets by name. The mean of S is 489 KB, that of T 20 KB, that of L 95 MB; the others hold one
// class of files alone.
func recipes() map[string]recipe {
	return map[string]recipe{
		"S":    {docs: 2000, xml: span{8_000, 40_000}, pdf: span{60_000, 545_000}, jpeg: span{100_000, 600_000}, pdf2: span{50_000, 250_000}, csv: span{2_000, 40_000}, scans: 4},
		"T":    {docs: 20_000, xml: span{5_000, 11_000}, pdf: span{7_000, 11_000}, jpeg: span{2_000, 6_000}, pdf2: span{4_000, 8_000}, csv: span{500, 2_000}, scans: 4},
		"L":    {docs: 8, xml: span{20_000, 60_000}, pdf: span{56_000_000, 64_000_000}, jpeg: span{34_900_000, 34_900_000}, scans: 10},
		"xml":  {docs: 400, xml: span{8_000, 40_000}},
		"pdf":  {docs: 200, pdf: span{60_000, 552_000}},
		"jpeg": {docs: 200, jpeg: span{100_000, 600_000}, scans: 10},
	}
}

// set is a data set on disk: one folder for each document.
type set struct {
	Name, Dir string
	Docs      int
	Bytes     int64 // of all files
}

// dataSet gives a data set of the size that the bench has, made the first time that it is asked for.
func (b *bench) dataSet(ctx context.Context, name string) (set, error) {
	r, ok := recipes()[name]
	if !ok {
		return set{}, fmt.Errorf("there is no data set %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(recipes())), ", "))
	}
	r.docs = b.scaleForQuick(r.docs)
	if name == "L" && b.quick {
		r.docs = 2
	}
	dir, err := b.makeOnce(ctx, fmt.Sprintf("set-%s-%d-seed%d", name, r.docs, b.seed), func(ctx context.Context, dir string) error {
		return r.writeSet(ctx, name, b.seed, dir)
	})
	if err != nil {
		return set{}, err
	}
	s := set{Name: name, Dir: dir, Docs: r.docs}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			s.Bytes += info.Size()
		}
		return err
	})
	return s, err
}

// folderPaths are the paths of the set's folders, in order.
func (s set) folderPaths() []string {
	all := make([]string, s.Docs)
	for i := range all {
		all[i] = filepath.Join(s.Dir, folderName(s.Name, i))
	}
	return all
}

func folderName(set string, i int) string { return fmt.Sprintf("%s-%06d", set, i) }

// writeSet writes the folders of a set. Each document depends on the seed, the set and its number alone, so that a
// smaller set is the beginning of a larger one.
func (r recipe) writeSet(ctx context.Context, name string, seed uint64, dir string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for i := range r.docs {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return r.writeFolder(filepath.Join(dir, folderName(name, i)), i, newInk(seed, name, i))
		})
	}
	return g.Wait()
}

// writeFolder writes one document. The marker comes last, as it should.
func (r recipe) writeFolder(dir string, i int, ink *ink) error {
	if err := os.Mkdir(dir, 0o770); err != nil {
		return err
	}
	doc := ink.invoice(filepath.Base(dir), i)
	files := []struct {
		name  string
		size  span
		turn  float64 // how the sizes go round; each class its own way
		write func(io.Writer, int) error
		here  bool
	}{
		{"metadata.json", span{1, 1}, 0, doc.sidecar, true},
		{"invoice.xml", r.xml, math.Sqrt2, doc.ubl, true},
		{"invoice.pdf", r.pdf, math.Phi, ink.pdf, true},
		{"scan.jpg", r.jpeg, math.Sqrt(3), ink.jpeg, i%10 < r.scans},
		{"terms.pdf", r.pdf2, math.Sqrt(7), ink.pdf, i%10 == 5},
		{"lines.csv", r.csv, math.Sqrt(11), doc.csv, i%10 == 7},
		{".done", span{1, 1}, 0, func(io.Writer, int) error { return nil }, true},
	}
	for _, f := range files {
		if !f.here || f.size == (span{}) {
			continue
		}
		if err := writeFile(filepath.Join(dir, f.name), func(w io.Writer) error { return f.write(w, f.size.sizeAt(i, f.turn)) }); err != nil {
			return err
		}
	}
	return nil
}

// sizeAt is the i-th size. Sizes go round evenly rather than by chance, so that every beginning of a set has its mean.
func (s span) sizeAt(i int, turn float64) int {
	_, part := math.Modf((float64(i) + 0.5) * turn)
	return s.min + int(part*float64(s.max-s.min))
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o660)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// newInk is what the i-th document of a set is written with.
func newInk(seed uint64, set string, i int) *ink {
	h := fnv.New128a()
	fmt.Fprintf(h, "%d/%s/%d", seed, set, i)
	var key [32]byte
	copy(key[:], bytes.Repeat(h.Sum(nil), 2))
	return inkFrom(key)
}
