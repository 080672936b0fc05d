package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// peer is a program that people would use in place of vaultd to send ZIPs.
type peer struct {
	name string
	// send uploads ZIPs to the gateway below a prefix and returns what that cost.
	send func(ctx context.Context, g *gateway, dir, prefix string, zips []archive.Package) (time.Duration, error)
}

var peers = []peer{{"s5cmd", sendS5cmd}, {"rclone", sendRclone}, {"curl", sendCurl}}

// peerRows compare vaultd with what a shell offers: `zip -9` for each folder, two at once, then one of three uploaders.
// All of them send to the same object store, versitygw. A shell keeps no ledger, repeats nothing and cannot tell what was
// sent.
func (b *bench) peerRows() []row {
	var rows []row
	for _, p := range peers {
		missing := notInstalled("versitygw", "zip", "xargs", p.name)
		for _, set := range []string{setNormal, setTiny} {
			r := row{ID: "peer-" + p.name + "-" + set, Goal: "G4", Title: "folders to objects, set " + set + ": vaultd against zip -9 and " + p.name,
				A: side{"vaultd", b.vaultdToGateway(set)}, B: side{"xargs -P2 zip -9, " + p.name, b.shellToGateway(set, p)}, Warmup: 1, Missing: missing}
			r.Ratios = p.wholeRatios(set)
			if !p.judged() {
				r.Warmup, r.Pairs = 0, b.fewPairs()
			}
			rows = append(rows, r)
		}
		rows = append(rows, row{ID: "send-" + p.name, Goal: "G5", Title: "ZIPs that are there already: vaultd's client against " + p.name,
			A: side{"vaultd's client", b.sendZIPs(peer{"vaultd", sendOurs})}, B: side{p.name, b.sendZIPs(p)}, Warmup: 1,
			Ratios: p.sendRatios(), Missing: notInstalled("versitygw", p.name)})
	}
	return rows
}

// judged is the peer that the goals name. Against the others the rows tell; curl, which does least, is a little faster.
func (p peer) judged() bool { return p.name == "s5cmd" }

func (p peer) wholeRatios(set string) []ratio {
	rate, cpu := 3.0, 0.25
	if set == setTiny {
		rate, cpu = 4.0, 0.15
	}
	return []ratio{
		judgedIf(p.judged(), ratio{"documents a second", rateRatio, fmt.Sprintf(">= %.0f", rate), atLeast(rate)}),
		judgedIf(p.judged(), ratio{"CPU", cpuRatio, fmt.Sprintf("<= %.2f", cpu), atMost(cpu)}),
		judgedIf(p.judged(), ratio{"bytes of ZIPs", sizeRatio, "<= 1.005", atMost(1.005)}),
		{"CPU without the read-back", func(a, b sample) float64 {
			return quotient(a.CPU.Seconds()-a.figureNamed("readback_cpu_s"), b.CPU.Seconds())
		}, "told", nil},
	}
}

func (p peer) sendRatios() []ratio {
	return []ratio{
		judgedIf(p.judged(), ratio{"ZIPs a second", rateRatio, ">= 1.5", atLeast(1.5)}),
		judgedIf(p.judged(), ratio{"CPU", cpuRatio, "<= 0.33", atMost(1.0 / 3)}),
	}
}

// judgedIf takes the verdict from a ratio that is not to be judged.
func judgedIf(judged bool, r ratio) ratio {
	if !judged {
		r.Want, r.Holds = "told", nil
	}
	return r
}

// notInstalled says which programs are missing; bench/README.md tells how to get them.
func notInstalled(programs ...string) string {
	var missing []string
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return strings.Join(missing, ", ") + " not installed"
}

// vaultdToGateway lets vaultd take a set; its uploads go to the gateway.
func (b *bench) vaultdToGateway(set string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		g, err := startGateway(ctx, dir)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, g.stop()) }()
		o := runOptions{service: fakeOptions{Store: g.url}, untilStored: true}
		o.stored = func(ctx context.Context, w work) error { return g.awaitStored(ctx, w.p, "", w.docs) }
		if s, err = b.run(ctx, dir, set, o); err != nil {
			return s, err
		}
		n, bytes, err := g.objects("", true)
		if n != s.Docs {
			return s, errors.Join(err, fmt.Errorf("the store holds %d of %d objects", n, s.Docs))
		}
		s.Out = bytes
		cost, readErr := readBackCost(ctx, g.bucket)
		s.noteFigure("readback_cpu_s", cost.Seconds())
		return s, errors.Join(err, readErr)
	}
}

// shellToGateway does the same with the tools of a shell.
func (b *bench) shellToGateway(set string, p peer) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		g, err := startGateway(ctx, dir)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, g.stop()) }()
		folders, err := b.shelf(ctx, set)
		if err != nil {
			return s, err
		}
		began := time.Now()
		zips, zipCPU, err := zipNine(ctx, folders, filepath.Join(dir, "zips"))
		if err != nil {
			return s, err
		}
		sendCPU, err := p.send(ctx, g, dir, "shell", zips)
		s = sample{Wall: time.Since(began), CPU: zipCPU + sendCPU, Docs: len(zips), In: folders.bytes}
		if err != nil {
			return s, err
		}
		n, bytes, err := g.objects("shell", true)
		if n != len(zips) {
			return s, errors.Join(err, fmt.Errorf("the store holds %d of %d objects", n, len(zips)))
		}
		s.Out = bytes
		return s, err
	}
}

// zipNine packs each folder as people do, without what vaultd leaves out as well: the sidecar and the marker.
func zipNine(ctx context.Context, folders *shelf, to string) (zips []archive.Package, cpu time.Duration, err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, 0, fmt.Errorf("make directory for ZIPs: %w", err)
	}
	const pack = `cd "$1" && exec zip -9 -q -r "$0/$1.zip" . -x metadata.json -x '*.done'`
	names := strings.NewReader(strings.Join(folders.names, "\x00"))
	cpu, err = spent(ctx, folders.dir, names, nil, "xargs", "-0", "-P2", "-n1", "sh", "-c", pack, to)
	for _, name := range folders.names {
		zips = append(zips, archive.Package{Path: filepath.Join(to, name+".zip")})
	}
	return zips, cpu, err
}
