package main

import (
	"archive/zip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/flate"

	"vaultd/internal/archive"
	"vaultd/internal/packager"
)

// zipRows measure packing alone, on one core, against the same compressor at its highest level everywhere: what is paid
// for is the size, what it costs is the time.
func (b *bench) zipRows() []row {
	var rows []row
	for _, c := range []struct{ level, set string }{
		{"default", "S"}, {"default", "T"}, {"default", "xml"}, {"default", "pdf"}, {"default", "jpeg"},
		{"max", "S"}, {"max", "T"}, {"fast", "S"}, {"fast", "T"},
	} {
		r := row{ID: "zip-" + c.level + "-" + c.set, Goal: "R2", Title: "packing set " + c.set + " at level " + c.level + " against level 9 everywhere",
			A: side{c.level, b.packRun(c.set, c.level)}, B: side{"level 9", b.plainRun(c.set)}, Warmup: 1,
			Ratios: []ratio{
				{"bytes of ZIPs", sizeRatio, "told", nil},
				{"CPU, of packing at twice that speed", twiceTheSpeed, "told", nil},
				{"speed of the compression alone", func(a, b sample) float64 { return quotient(compressing(b), compressing(a)) }, "told", nil},
				{"speed with digests", func(a, b sample) float64 { return cpuRatio(b, a) }, "told", nil},
			},
			Counts: []count{
				{"bytes of ZIPs, of the files", func(s sample) float64 { return quotient(float64(s.Out), float64(s.In)) }, "told", nil},
				{"MB/s of one core, compression alone", func(s sample) float64 { return quotient(float64(s.In)/1e6, compressing(s)) }, "told", nil},
				{"bytes over storing, worst document", figureOfRow("over_stored"), "<= 0", atMost(0)},
			}}
		if c.level == "default" && (c.set == "S" || c.set == "T") {
			r.Goal = "G6 R2"
			r.Ratios[0].Want, r.Ratios[0].Holds = "<= 1.003", atMost(1.003)
			r.Ratios[1].Want, r.Ratios[1].Holds = "<= 1", atMost(1)
		}
		if c.level != "default" {
			r.Warmup, r.Pairs = 0, b.fewPairs()
		}
		rows = append(rows, r)
	}
	for _, set := range []string{"S", "T"} {
		rows = append(rows, row{ID: "build-" + set, Goal: "R3", Title: "set " + set + ": ZIPs as vaultd makes them, written, read back and synced, against packing alone",
			A: side{"build", b.buildRun(set)}, B: side{"pack", b.packRun(set, "default")}, Pairs: b.fewPairs(),
			Ratios: []ratio{{"CPU", cpuRatio, "told", nil}, {"wall", wallRatio, "told", nil}}})
	}
	return rows
}

// compressing is the CPU time without that of reading the files and of all digests; 0: it is less than the noise of the two.
func compressing(s sample) float64 { return max(s.CPU.Seconds()-s.figureNamed("digests_cpu_s"), 0) }

// twiceTheSpeed is at most 1 where A compresses at least twice as fast as B. The quotient of the two speeds says the same,
// but where A hardly takes longer than its digests that is a quotient by next to nothing, and noisy.
func twiceTheSpeed(a, b sample) float64 {
	return quotient(a.CPU.Seconds(), b.figureNamed("digests_cpu_s")+compressing(b)/2)
}

// each measures work on every folder of a set, one after the other.
func (s set) each(work func(folder string) error) (sample, error) {
	out, err := measureOwnWork(func() error {
		for _, folder := range s.folderPaths() {
			if err := work(folder); err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(folder), err)
			}
		}
		return nil
	})
	out.Docs = s.Docs
	return out, err
}

// packRun packs a set to nowhere: folders read and checked, files compressed, all digests.
func (b *bench) packRun(name, level string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (sample, error) {
		set, err := b.dataSet(ctx, name)
		if err != nil {
			return sample{}, err
		}
		size, err := b.weigh(ctx, set, level, dir)
		if err != nil {
			return sample{}, err
		}
		s, err := set.each(func(folder string) error {
			root, err := os.OpenRoot(folder)
			if err != nil {
				return err
			}
			_, err = packager.ValidateFolder(ctx, root, packRules(level))
			return errors.Join(err, root.Close())
		})
		s.In, s.Out = size.In, size.Out
		s.noteFigure("over_stored", size.Over)
		return s, errors.Join(err, set.digests(&s))
	}
}

// weight is what a set weighs when it is packed.
type weight struct {
	In, Out int64   // bytes of the files, and of the ZIPs
	Over    float64 // by how much the worst ZIP is larger than one that stores everything; negative where none is
}

// weigh packs a set for its sizes alone, once for each level.
func (b *bench) weigh(ctx context.Context, set set, level, dir string) (weight, error) {
	known := set.Name + " " + level
	if w, ok := b.weights[known]; ok {
		return w, nil
	}
	w := weight{Over: -1 << 40}
	for _, folder := range set.folderPaths() {
		sealed, err := buildPackage(ctx, folder, level, filepath.Join(dir, "weighed.zip"))
		if err != nil {
			return w, err
		}
		for _, f := range sealed.Files {
			w.In += f.Size
		}
		w.Out += sealed.Package.Size
		w.Over = max(w.Over, float64(sealed.Package.Size-stores(sealed.Files)))
	}
	b.weights[known] = w
	return w, nil
}

// stores is the size of a ZIP that stores the files: headers, and for those that are packed as they are read a record
// behind the data and five bytes for each block.
func stores(files []archive.File) int64 {
	const local, central, end, behind, block, inMemory = 30, 46, 22, 16, 65_535, 1 << 20
	size := int64(end)
	for _, f := range files {
		size += f.Size + local + central + 2*int64(len(f.Path))
		if f.Size > inMemory {
			size += behind + 5*(f.Size/block+2)
		}
	}
	return size
}

// buildRun makes the ZIPs as vaultd does.
func (b *bench) buildRun(name string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (sample, error) {
		set, err := b.dataSet(ctx, name)
		if err != nil {
			return sample{}, err
		}
		var out int64
		s, err := set.each(func(folder string) error {
			sealed, err := buildPackage(ctx, folder, "default", filepath.Join(dir, "x.zip"))
			out += sealed.Package.Size
			return err
		})
		s.In, s.Out = set.Bytes, out
		return s, err
	}
}

// plainRun packs a set as anybody would, level 9 for every file, with the digests that vaultd takes as it packs: SHA-256 of
// the files, MD5 of the ZIP. The SHA-256 of the ZIP belongs to its read-back, which is in neither side.
func (b *bench) plainRun(name string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, _ string) (sample, error) {
		set, err := b.dataSet(ctx, name)
		if err != nil {
			return sample{}, err
		}
		best, err := flate.NewWriter(io.Discard, flate.BestCompression)
		if err != nil {
			return sample{}, err
		}
		var in, out int64
		s, err := set.each(func(folder string) error {
			n, size, err := plainZIP(folder, best)
			in, out = in+n, out+size
			return errors.Join(err, ctx.Err())
		})
		s.In, s.Out = in, out
		return s, errors.Join(err, set.digests(&s))
	}
}

// plainZIP packs the files of one folder, but for sidecar and marker, and returns their bytes and those of the ZIP.
func plainZIP(folder string, level *flate.Writer) (in, out int64, err error) {
	to := &byteCounter{}
	z := zip.NewWriter(io.MultiWriter(to, md5.New()))
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		level.Reset(w)
		return level, nil
	})
	err = eachFile(folder, func(name string, r io.Reader) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		n, err := io.Copy(io.MultiWriter(w, sha256.New()), r)
		in += n
		return err
	})
	return in, to.n, errors.Join(err, z.Close())
}

// byteCounter counts bytes.
type byteCounter struct{ n int64 }

// Write implements io.Writer.
func (t *byteCounter) Write(p []byte) (int, error) {
	t.n += int64(len(p))
	return len(p), nil
}

// eachFile opens the files of a folder that go into its ZIP.
func eachFile(folder string, use func(name string, r io.Reader) error) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "metadata.json" || e.Name() == ".done" {
			continue
		}
		f, err := os.Open(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		if err := errors.Join(use(e.Name(), f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// digests notes what it costs to read a set's files and to take the digests that are taken of them and of their ZIPs.
func (s set) digests(of *sample) error {
	share := quotient(float64(of.Out), float64(of.In))
	took, err := s.each(func(folder string) error {
		return eachFile(folder, func(_ string, r io.Reader) error {
			data, err := io.ReadAll(r)
			packed := data[:int(min(share, 1)*float64(len(data)))]
			sha256.Sum256(data)
			md5.Sum(packed)
			return err
		})
	})
	of.noteFigure("digests_cpu_s", took.CPU.Seconds())
	return err
}
