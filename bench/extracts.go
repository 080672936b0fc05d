package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// extractRows compare vaultd, that takes one extract into custody, with a bare client: a GET of each file, its SHA-256 and a sync, and
// nothing else. That client keeps no record, reads no ZIP to its end, and would begin anew after a crash.
func (b *bench) extractRows() []row {
	return []row{{ID: "extracts", Goal: "extracts", Title: fmt.Sprintf("one extract of %d files of %d MiB, until it is held: vaultd against a bare client", extractFiles, extractFileSize>>20),
		A: side{"vaultd", b.extractRun()}, B: side{"bare client", b.bareExtractRun()}, Warmup: 1,
		Ratios: []ratio{{"wall", wallRatio, "<= 1.10", atMost(1.10)}, {"CPU", cpuRatio, "<= 1.15", atMost(1.15)}},
		Counts: []count{{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)}, {"commits a file", commitsPerDoc, "told", nil}, {"ledger syncs a file", syncsPerDoc, "told", nil}}}}
}

// extractRun measures from the start of vaultd until the manifest says that all files are held.
func (b *bench) extractRun() func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		drop, custody := filepath.Join(dir, "drop"), filepath.Join(dir, "custody")
		in, err := b.installVaultd(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}, Custody: custody})
		if err = errors.Join(err, os.Mkdir(drop, 0o770), os.Mkdir(custody, 0o750)); err != nil {
			return s, err
		}
		unix.Sync() // what was written before is not being written to the disk while vaultd works
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer p.kill()
		begin := beginning{at: p.began}
		err = p.awaitUntil(ctx, 5*time.Millisecond, "the manifest", func() (bool, error) {
			_, err := os.Stat(filepath.Join(custody, "extracts", "1", "manifest.json"))
			return err == nil, nil
		})
		if err != nil {
			return s, err
		}
		s.Wall, s.Docs = time.Since(begin.at), extractFiles
		return s, errors.Join(p.fillSample(&s, begin), p.stop())
	}
}

func (b *bench) bareExtractRun() func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		client, err := plainClient(svc.CA, 1)
		if err != nil {
			return s, err
		}
		unix.Sync()
		s, err = measureOwnWork(func() error {
			for i := range extractFiles {
				if err := fetchBare(ctx, client, fmt.Sprint(svc.URL, "/v1/dataExtracts/1/files/", i), filepath.Join(dir, fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return nil
		})
		s.Docs = extractFiles
		return s, err
	}
}

// fetchBare downloads one file with nothing but the standard library.
func fetchBare(ctx context.Context, client *http.Client, url, to string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.SetBasicAuth(benchUser, benchSecret)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(file, sha256.New()), resp.Body)
	return errors.Join(err, file.Sync(), file.Close())
}
