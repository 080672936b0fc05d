package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/testdata"
)

// sample is one invoice folder of the demo: what testdata has under drop and folder, and a scan beside it.
type sample struct {
	drop, folder string
	scan         int    // so many pixels wide and high; 0 if missing
	slow         bool   // written piece by piece, as a busy copy is
	after        string // dropped only when this folder was taken
}

// listSamples returns the folders of the demo: a dozen invoices for two vaults, of several sizes, and the mistakes that people make
// on a first day.
func listSamples() []sample {
	return []sample{
		{drop: "acme-in", folder: "Müller 4711"},
		{drop: "acme-in", folder: "Huber 88", scan: 500},
		{drop: "acme-in", folder: "Otto 19", scan: 1100},
		{drop: "beta-in", folder: "Kunz 301", scan: 2100},
		{drop: "beta-in", folder: "Fischer 9"},
		{drop: "beta-in", folder: "Bauer 77", scan: 300},
		{drop: "beta-in", folder: "Braun 15"},
		{drop: "beta-in", folder: "Meier 12"},
		{drop: "acme-in", folder: "Wagner 5", scan: 800, slow: true},
		{drop: "acme-in", folder: "Schulz 3"},
		{drop: "acme-in", folder: "Kern 6"},
		{drop: "acme-in", folder: "Otto 19 Kopie", scan: 1100, after: "Otto 19"},
	}
}

// dropSamples writes the samples side by side, the slow one over several seconds;
// one that repeats another waits until that was taken.
func dropSamples(ctx context.Context, dir string) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range listSamples() {
		g.Go(func() error {
			if s.after != "" && !waitUntilTaken(ctx, filepath.Join(dir, s.drop, s.after)) {
				return nil // the demo's time is over; what is not dropped is not shown
			}
			if err := s.writeFolder(ctx, dir); err != nil {
				return fmt.Errorf("drop sample %q: %w", s.folder, err)
			}
			return nil
		})
	}
	for _, s := range listPDFSamples() {
		g.Go(func() error { return s.drop(ctx, dir) })
	}
	for _, s := range listNetworkSamples() {
		g.Go(func() error { return s.drop(dir) })
	}
	return g.Wait()
}

// writeFolder makes the folder in dir, with its sidecar last.
func (s sample) writeFolder(ctx context.Context, dir string) error {
	const sidecar = "metadata.json"
	folder, in := filepath.Join(dir, s.drop, s.folder), path.Join(s.drop, s.folder)
	err := fs.WalkDir(testdata.Drops, in, func(name string, d fs.DirEntry, err error) error { //lint:ignore forbidigo a sample has few files
		to := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil || d.Name() == sidecar:
			return err
		case d.IsDir():
			return os.Mkdir(to, 0o770)
		}
		content, err := testdata.Drops.ReadFile(name)
		if err != nil {
			return err
		}
		return s.copyFile(ctx, to, content)
	})
	if err == nil && s.scan > 0 {
		err = s.copyFile(ctx, filepath.Join(folder, "scan.jpg"), drawScan(s.scan))
	}
	if err != nil {
		return err
	}
	meta, err := testdata.Drops.ReadFile(path.Join(in, sidecar))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, sidecar), meta, 0o660)
}

// copyFile writes a file as a file manager does, a slow one in pieces with pauses.
func (s sample) copyFile(ctx context.Context, path string, content []byte) error {
	if !s.slow {
		return os.WriteFile(path, content, 0o660)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o660)
	if err != nil {
		return err
	}
	pause := time.NewTicker(500 * time.Millisecond)
	defer pause.Stop()
	for piece := range 5 {
		lo, hi := len(content)*piece/5, len(content)*(piece+1)/5
		if _, err := f.Write(content[lo:hi]); err != nil {
			return errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	return f.Close()
}

// drawScan draws paper with noise, as scanners see it: it hardly shrinks.
func drawScan(edge int) []byte {
	r := rand.New(rand.NewPCG(uint64(edge), 1))
	img := image.NewGray(image.Rect(0, 0, edge, edge))
	for i := range img.Pix {
		img.Pix[i] = uint8(200 + r.IntN(56))
	}
	for y := edge / 8; y < edge; y += edge/40 + 1 {
		for x := edge / 10; x < edge*9/10; x++ {
			img.SetGray(x, y, color.Gray{Y: uint8(r.IntN(90))})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 92}); err != nil {
		panic(err) // a picture in memory always encodes
	}
	return b.Bytes()
}
