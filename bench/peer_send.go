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
	"strings"
	"time"

	"vaultd/internal/archive"
)

// peerTransfers is how many uploads the peers have under way at once: with 64 and with 256, s5cmd and rclone are slower.
const peerTransfers = "16"

func sendS5cmd(ctx context.Context, g *gateway, dir, prefix string, zips []archive.Package) (time.Duration, error) {
	endpoint, _ := strings.CutSuffix(g.url, "/"+gatewayBucket)
	return spent(ctx, dir, nil, storeEnvironment(), "s5cmd", "--endpoint-url", endpoint, "--numworkers", peerTransfers, "--log", "error",
		"cp", filepath.Dir(zips[0].Path)+"/*.zip", "s3://"+gatewayBucket+"/"+prefix+"/")
}

func sendRclone(ctx context.Context, g *gateway, dir, prefix string, zips []archive.Package) (time.Duration, error) {
	endpoint, _ := strings.CutSuffix(g.url, "/"+gatewayBucket)
	return spent(ctx, dir, nil, append(storeEnvironment(), "RCLONE_CONFIG="+os.DevNull), "rclone", "copy", "--transfers", peerTransfers, "--checkers", peerTransfers,
		"--s3-provider", "Other", "--s3-endpoint", endpoint, "--s3-env-auth", "--s3-region", storeRegion, "--s3-no-check-bucket",
		filepath.Dir(zips[0].Path), ":s3:"+gatewayBucket+"/"+prefix)
}

func storeEnvironment() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + storeAccess, "AWS_SECRET_ACCESS_KEY=" + storeSecret, "AWS_REGION=" + storeRegion}
}

// sendCurl sends to pre-signed addresses, as vaultd does.
func sendCurl(ctx context.Context, g *gateway, dir, prefix string, zips []archive.Package) (time.Duration, error) {
	var config strings.Builder
	for i, address := range g.presigned(prefix, zips) {
		if i > 0 {
			config.WriteString("next\n")
		}
		fmt.Fprintf(&config, "upload-file = %q\nurl = %q\noutput = %q\nsilent\nfail\n", zips[i].Path, address, os.DevNull)
	}
	list := filepath.Join(dir, "curl.config")
	if err := os.WriteFile(list, []byte(config.String()), 0o600); err != nil {
		return 0, err
	}
	return spent(ctx, dir, nil, nil, "curl", "--parallel", "--parallel-max", peerTransfers, "--no-progress-meter", "--config", list)
}

// sendOurs sends with vaultd's client, from this process, with Content-MD5. The digest is known from the packing, where
// its price is counted.
func sendOurs(ctx context.Context, g *gateway, _, prefix string, zips []archive.Package) (time.Duration, error) {
	put, err := ownClient(strings.TrimSuffix(g.url, "/"+gatewayBucket), "")
	if err != nil {
		return 0, err
	}
	grants := make([]granted, len(zips))
	for i, address := range g.presigned(prefix, zips) {
		grants[i] = granted{archive.Ticket{URL: archive.PresignedURL(address)}, zips[i]}
	}
	before := ownCPU()
	err = sendAll(ctx, grants, put)
	return ownCPU() - before, err
}

// measured is a ZIP with its size and digests.
func measured(path string) (archive.Package, error) {
	f, err := os.Open(path)
	if err != nil {
		return archive.Package{}, err
	}
	defer f.Close() // read-only
	sum, sha := md5.New(), sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, sha), f)
	return archive.Package{Path: path, Size: n, SHA256: archive.Digest(sha.Sum(nil)), MD5: [16]byte(sum.Sum(nil))}, err
}

// sendZIPs measures one uploader alone, on the ZIPs of the normal set.
func (b *bench) sendZIPs(p peer) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		zips, err := b.zips(ctx)
		if err != nil {
			return s, err
		}
		g, err := startGateway(ctx, dir)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, g.stop()) }()
		began := time.Now()
		cpu, err := p.send(ctx, g, dir, "ready", zips)
		s = sample{Wall: time.Since(began), CPU: cpu, Docs: len(zips)}
		if err != nil {
			return s, err
		}
		n := 0
		if n, s.Out, err = g.objects("ready", true); n != len(zips) {
			err = errors.Join(err, fmt.Errorf("the store holds %d of %d objects", n, len(zips)))
		}
		return s, err
	}
}

// zips are those of the normal set, made once.
func (b *bench) zips(ctx context.Context) (zips []archive.Package, err error) {
	folders, err := b.shelf(ctx, setNormal)
	if err != nil {
		return nil, err
	}
	dir, err := b.makeOnce(ctx, "zips-of-"+filepath.Base(folders.dir), func(ctx context.Context, dir string) error {
		w := &bare{spool: dir}
		for _, name := range folders.names {
			if _, err := w.pack(ctx, filepath.Join(folders.dir, name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	for _, path := range paths {
		p, oneErr := measured(path)
		zips, err = append(zips, p), errors.Join(err, oneErr)
	}
	return zips, err
}

// readBackCost is what it costs to read ZIPs back as vaultd does before it sends them: the digest of all bytes, and
// every entry with its CRC and its digest.
func readBackCost(ctx context.Context, dir string) (time.Duration, error) {
	zips, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	if err != nil {
		return 0, err
	}
	before, buf := ownCPU(), make([]byte, 32<<10)
	for _, path := range zips {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := readBack(path, buf); err != nil {
			return 0, fmt.Errorf("read %s back: %w", path, err)
		}
	}
	return ownCPU() - before, nil
}

func readBack(path string, buf []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // read-only
	size, err := io.CopyBuffer(sha256.New(), struct{ io.Reader }{f}, buf)
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, size)
	if err != nil {
		return err
	}
	for _, entry := range z.File {
		r, err := entry.Open()
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(sha256.New(), struct{ io.Reader }{r}, buf)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}
