package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"vaultd/internal/archive"
)

// Whom the addresses of packages are signed for, with the stand-in's own store as with the gateway.
const (
	storeAccess = "VAULTBENCH"
	storeSecret = "only-for-measurements"
	storeRegion = "eu-central-1"
)

func storeSigner() signer { return signer{access: storeAccess, secret: storeSecret} }

// gateway is versitygw: an object store over a directory, in a process of its own. It knows nothing of vaultd, and
// checks what it is sent as any store does.
type gateway struct {
	url    string // with the bucket
	bucket string // its directory
	cmd    *exec.Cmd
}

const gatewayBucket = "bench"

// startGateway starts it with an empty bucket below dir, and waits until it answers.
func startGateway(ctx context.Context, dir string) (*gateway, error) {
	bin, err := exec.LookPath("versitygw")
	if err != nil {
		return nil, err
	}
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	g := &gateway{url: "http://" + address + "/" + gatewayBucket, bucket: filepath.Join(dir, "store", gatewayBucket)}
	if err := os.MkdirAll(g.bucket, 0o700); err != nil {
		return nil, fmt.Errorf("make bucket: %w", err)
	}
	log, err := os.Create(filepath.Join(dir, "versitygw.log"))
	if err != nil {
		return nil, err
	}
	g.cmd = child(ctx, bin, "--port", address, "--region", storeRegion, "--keep-alive", "--quiet", "posix", filepath.Dir(g.bucket))
	g.cmd.Env = append(g.cmd.Environ(), "ROOT_ACCESS_KEY="+storeAccess, "ROOT_SECRET_KEY="+storeSecret)
	g.cmd.Stdout, g.cmd.Stderr = log, log
	if err := errors.Join(g.cmd.Start(), log.Close()); err != nil {
		return nil, fmt.Errorf("start versitygw: %w", err)
	}
	if err := answers(ctx, g.url); err != nil {
		return nil, errors.Join(fmt.Errorf("start versitygw: %w", err), g.stop())
	}
	return g, nil
}

// answers waits until a server says anything at all.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (g *gateway) stop() error {
	if err := g.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop versitygw: %w", err)
	}
	_ = g.cmd.Wait() // killed
	return nil
}

// objects counts the objects below a prefix, and their bytes. Only names count where size is not asked for.
func (g *gateway) objects(prefix string, size bool) (n int, bytes int64, err error) {
	dir, err := os.Open(filepath.Join(g.bucket, prefix))
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	} else if err != nil {
		return 0, 0, err
	}
	defer dir.Close() // read-only
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if filepath.Ext(name) != ".zip" {
			continue
		}
		n++
		if !size {
			continue
		}
		info, statErr := os.Lstat(filepath.Join(dir.Name(), name))
		if statErr != nil {
			return n, bytes, statErr
		}
		bytes += info.Size()
	}
	return n, bytes, err
}

// awaitStored waits until the gateway holds so many objects. It looks the more often the nearer the end is: counting
// costs the machine something too.
func (g *gateway) awaitStored(ctx context.Context, p *process, prefix string, want int) error {
	began, next := time.Now(), time.Time{}
	return p.awaitUntil(ctx, 10*time.Millisecond, "objects in the store", func() (bool, error) {
		if time.Now().Before(next) {
			return false, nil
		}
		n, _, err := g.objects(prefix, false)
		left := time.Since(began) / time.Duration(max(n, 1)) * time.Duration(want-n)
		next = time.Now().Add(min(left/2, time.Second))
		return n >= want, err
	})
}

// presigned are upload addresses of the gateway for ZIPs, below a prefix.
func (g *gateway) presigned(prefix string, zips []archive.Package) []string {
	all := make([]string, len(zips))
	for i, zip := range zips {
		all[i] = storeSigner().presign(g.url+"/"+prefix+"/"+filepath.Base(zip.Path), time.Now(), 15*time.Minute)
	}
	return all
}

// spent runs a command to its end and returns what it and all its children used.
func spent(ctx context.Context, dir string, stdin io.Reader, env []string, name string, args ...string) (cpu time.Duration, err error) {
	cmd := child(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, stdin, append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", name, err, lastLines(out))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
