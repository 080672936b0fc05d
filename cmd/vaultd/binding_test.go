package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// otherServices are the sections that have an address besides service.
var otherServices = map[string]string{
	"pdf":      "pdf: {base_url: %s, auth: {method: basic, username: demo, secret_file: DIR/secret}}",
	"extracts": "extracts: {base_url: %s, custody: DIR/custody, auth: {method: basic, username: demo, secret_file: DIR/secret}}",
	"network":  "network: {base_url: %s, auth: {method: basic, username: demo, secret_file: DIR/secret}}",
}

// A ledger belongs to one environment and to one address of each service. The
// address of a section is bound by init, or by the first run with that section;
// then every command refuses another one in the same words, until the ledger is
// rebuilt.
func TestBinding_I24_EachServiceHasOneAddress(t *testing.T) {
	t.Parallel()
	for name, form := range otherServices {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := served(t, emulator.Config{}, fast)
			kit.Must(t, os.Mkdir(filepath.Join(s.dir, "custody"), 0o700))
			plain := kit.Value(os.ReadFile(s.config))(t)
			at := func(environment, address string) {
				text := strings.Replace(string(plain), "environment: test", "environment: "+environment, 1)
				if address != "" {
					text += strings.ReplaceAll(fmt.Sprintf(form, address), "DIR", s.dir) + "\n"
				}
				kit.Must(t, os.WriteFile(s.config, []byte(text), 0o640))
			}
			s.must(0, "run", "--once") // a ledger from before the section
			at("test", "http://127.0.0.1:1")
			s.vaultd("run", "--once") // the section's service is silent: the binding holds all the same
			copied := filepath.Join(s.dir, "copy.db")
			s.must(0, "backup", copied)
			out, _ := s.vaultd("doctor")
			kit.Holds(t, "doctor", out, name+".base_url http://127.0.0.1:1")
			// Without the section any address is right; the ledger keeps its
			// own.
			at("test", "")
			s.must(0, "run", "--once")

			at("test", "http://127.0.0.1:2")
			words := "the ledger was made for " + name + `.base_url "http://127.0.0.1:1", the configuration says "http://127.0.0.1:2"`
			for args, code := range map[string]int{"run --once": exitConfig, "status": exitPerson, "check --offline": 0, "doctor": exitFailed,
				"reconcile": exitConfig, "restore --reason x " + copied: exitConfig} {
				out, got := s.vaultd(strings.Fields(args)...)
				kit.Want(t, args+": exit code", got, code)
				kit.Holds(t, args, out, words, "use another state_dir")
			}
			at("production", "http://127.0.0.1:1")
			out, code := s.vaultd("run", "--once")
			kit.Want(t, "production: exit code", code, exitConfig)
			kit.Holds(t, "production", out, `the ledger was made for environment "test", the configuration says "production"`)

			// The step that a change of service.base_url needs, too.
			at("test", "http://127.0.0.1:2")
			for _, file := range []string{"ledger.db", "ledger.head"} {
				kit.Must(t, os.Rename(filepath.Join(s.dir, "state", file), filepath.Join(s.dir, file)))
			}
			s.must(0, "rebuild", "--reason", "wrong base_url")
			s.must(0, "reconcile")
			at("test", "http://127.0.0.1:1")
			kit.Holds(t, "after the rebuild", s.must(exitConfig, "run", "--once"), name+`.base_url "http://127.0.0.1:2"`)
		})
	}
}

// A reload may add a service, which binds the ledger to its address. It refuses
// another address, also where the section was absent in between.
func TestReload_I24_AServiceKeepsItsAddress(t *testing.T) {
	t.Parallel()
	for name, form := range otherServices {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := served(t, emulator.Config{}, fast)
			kit.Must(t, os.Mkdir(filepath.Join(s.dir, "custody"), 0o700))
			plain := kit.Value(os.ReadFile(s.config))(t)
			run := s.begin()
			for _, step := range []struct {
				address, says string
				code          int
			}{
				{"http://127.0.0.1:1", "configuration reloaded", 0},
				{"http://127.0.0.1:2", name + ".base_url: cannot change while vaultd runs", exitConfig},
				{"", "configuration reloaded", 0},
				{"http://127.0.0.1:2", "the ledger was made for " + name + ".base_url", exitConfig},
				{"http://127.0.0.1:1", "configuration reloaded", 0},
			} {
				text := string(plain)
				if step.address != "" {
					text += strings.ReplaceAll(fmt.Sprintf(form, step.address), "DIR", s.dir) + "\n"
				}
				kit.Must(t, os.WriteFile(s.config, []byte(text), 0o640))
				out, code := s.vaultd("reload")
				kit.Want(t, fmt.Sprintf("reload with %q: exit code", step.address), code, step.code)
				kit.Holds(t, fmt.Sprintf("reload with %q", step.address), out, step.says)
				kit.Await(t, "the binding", func() bool {
					out, _ := s.vaultd("doctor")
					return strings.Contains(out, name+".base_url http://127.0.0.1:1")
				})
			}
			kit.Want(t, "exit code of run", run.stop(t), 0)
		})
	}
}

// The extracts have an API user of their own: check names another section that
// has it too.
func TestCheck_I24_ExtractsHaveTheirOwnUser(t *testing.T) {
	for user, isNamed := range map[string]bool{"u": true, "books": false} {
		secret := secretFile(t, canary, 0o600)
		text := strings.Replace(smallConfig, "/etc/vaultd/secret", secret, 1) +
			"extracts: {base_url: \"https://books.acme.test\", custody: " + t.TempDir() + ", auth: {method: basic, username: " + user + ", secret_file: " + secret + "}}\n"
		out, _, _ := runHere("check", "--offline", "--config", writeConfig(t, text))
		kit.Want(t, user, strings.Contains(out, "LOOK AT  extracts.auth.username: service.auth has this user too"), isNamed)
	}
}
