package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// networkAnswers are the faults of the two questions that doctor asks the network.
func networkAnswers(directory, notifications emulator.Fault) emulator.Config {
	var rules []emulator.Rule
	for op, fault := range map[string]emulator.Fault{"network-directory": directory, "network-notices": notifications} {
		if fault != (emulator.Fault{}) {
			rules = append(rules, emulator.Rule{Op: op, Rate: 1, Fault: fault})
		}
	}
	return emulator.Config{Faults: emulator.Faults{Rules: rules}}
}

// doctor says of each of the two questions what its answer means and what to do. Where one is answered, address and credentials are right.
func TestDoctor_Network(t *testing.T) {
	t.Parallel()
	good := emulator.Fault{}
	status := func(code int) emulator.Fault { return emulator.Fault{Kind: emulator.Status, Status: code} }
	notEnabled := emulator.Fault{Kind: emulator.Coded, Code: "Error.001.0012"}
	const enable = "network.base_url and network.auth are right, because the other question was answered: ask the provider to enable this account to "
	for name, row := range map[string]struct {
		cfg                      emulator.Config
		code                     int
		directory, notifications []string // words of the result
	}{
		"Good":                       {networkAnswers(good, good), exitDone, []string{"OK ", "no line for SIREN 000000001"}, []string{"OK ", "it is empty | \n"}},
		"DirectoryRefusesTheNumber":  {networkAnswers(status(422), good), exitDone, []string{"OK ", "does not take SIREN 000000001"}, []string{"OK "}},
		"NoRightForTheDirectory":     {networkAnswers(status(403), good), exitRights, []string{"FAIL ", "403", enable + "ask the directory"}, []string{"OK "}},
		"NoDirectory":                {networkAnswers(status(404), good), exitFailed, []string{"FAIL ", "404", enable + "ask the directory"}, []string{"OK "}},
		"NoRightForNotifications":    {networkAnswers(good, status(403)), exitDone, []string{"OK "}, []string{"WARN ", "403", "none is configured", enable + "list notifications"}},
		"NotificationsNotEnabled":    {networkAnswers(good, notEnabled), exitDone, []string{"OK "}, []string{"WARN ", "Error.001.0012", enable + "list notifications"}},
		"NotificationsFail":          {networkAnswers(good, emulator.Fault{Kind: emulator.HTML}), exitDone, []string{"OK "}, []string{"WARN ", "service.proxy"}},
		"NoRightAtAll":               {networkAnswers(status(401), status(401)), exitRights, []string{"FAIL ", "401", "look at network.auth", "may ask the directory"}, []string{"FAIL ", "401", "look at network.auth", "may list notifications"}},
		"WrongPath":                  {networkAnswers(status(404), status(404)), exitFailed, []string{"FAIL ", "look at network.base_url"}, []string{"FAIL ", "look at network.base_url"}},
		"DirectoryHasALineForNobody": {emulator.Config{Network: emulator.Network{Directory: []emulator.DirectoryLine{{SIREN: "000000001"}}}}, exitDone, []string{"WARN ", "1 line for SIREN 000000001", "ask the provider"}, []string{"OK "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, s := served(t, row.cfg, fast)
			s.withNetwork(s.service)
			d := s.diagnose(row.code)
			for name, words := range map[string][]string{"directory": row.directory, "notifications": row.notifications} {
				found := d.found("network", name) + "\n"
				for _, word := range words {
					kit.Check(t, strings.Contains(found, word), "%s does not say %q: %s", name, word, found)
				}
				kit.Want(t, fmt.Sprintf("%s is told more than once: %s", name, found), strings.Count(found, "\n"), 1)
			}
			kit.Want(t, "a notification was acknowledged", emu.CountCalls("network-acknowledge"), 0)
		})
	}
	t.Run("NotificationsNeeded", func(t *testing.T) { // a drop sends documents, of which nobody would hear
		t.Parallel()
		_, s := served(t, networkAnswers(good, status(403)), fast)
		s.withNetwork(s.service)
		kit.Must(t, os.Mkdir(s.dir+"/out", 0o770))
		s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network}\n")
		if found := s.diagnose(exitRights).found("network", "notifications"); !strings.Contains(found, "FAIL ") || !strings.Contains(found, "nobody hears what became of sent documents") || !strings.Contains(found, enable+"list notifications") {
			t.Errorf(`%s, want found with "FAIL ", found with "nobody hears what became of sent documents", found with %q`, found, enable+"list notifications")
		}
	})
	t.Run("Away", func(t *testing.T) {
		t.Parallel()
		_, s := served(t, emulator.Config{}, fast)
		s.withNetwork("http://" + freeAddress(t))
		kit.Holds(t, `s.diagnose(exitUnavailable).found("network", "")`,
			s.diagnose(exitUnavailable).found("network", ""), "FAIL", "network.base_url")
	})
	t.Run("OneWaits", func(t *testing.T) { // I30: it waits afterwards too
		t.Parallel()
		emu, address := serveEmulator(t, emulator.Config{})
		if _, err := emu.PublishNotice(emulator.NetworkNotice{BumID: "10d90000-0000-5000-8000-00000000000a", ResponseCode: "TechnicalAccept", ActionCode: "Delivered"}); err != nil {
			t.Fatal(err)
		}
		s := newSite(t, address, fast)
		s.withNetwork(address)
		for try := range 2 {
			if found := s.diagnose(exitDone).found("network", "notifications"); !strings.Contains(found, "it is not empty, and nothing was acknowledged") || emu.CountCalls("network-notices") != try+1 || emu.CountCalls("network-acknowledge") != 0 {
				t.Errorf("try %d: %s", try, found)
			}
		}
	})
	t.Run("SecretFileMissing", func(t *testing.T) {
		t.Parallel()
		emu, s := served(t, emulator.Config{}, fast)
		s.withNetwork(s.service)
		s.edit("secret_file: "+s.dir+"/secret}}", "secret_file: "+s.dir+"/none}}")
		out, code := s.vaultd("doctor")
		if code == exitDone || strings.Count(out, "FAIL  network directory: ") != 1 || strings.Contains(out, "network notifications") || emu.CountCalls("network-notices") != 0 {
			t.Errorf("exit %d: %s", code, out)
		}
	})
}
