package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

const unitDir = "../../systemd"

// analyzer finds systemd-analyze.
func analyzer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		kit.Missing(t, "systemd-analyze for the unit: install Debian's package systemd")
	}
	return path
}

// I27: the unit leaves vaultd so little that its exposure is at most 1.3.
func TestUnit_I27_ExposureAtMost1_3(t *testing.T) {
	out, err := exec.Command(analyzer(t), "security", "--offline=true", "--no-pager", "--threshold=13", filepath.Join(unitDir, "vaultd.service")).CombinedOutput()
	kit.Check(t, err == nil, "%v\n%s", err, out)
	t.Log(tail(strings.TrimSpace(string(out)), 80))
}

// I27: with the drop-in that the quick start installs, and with each of the lines in it that a site may want, the exposure is
// no more than docs/security.md and the drop-in itself say.
func TestUnit_I27_ExposureWithDropIns(t *testing.T) {
	program := analyzer(t)
	site := kit.Value(os.ReadFile(filepath.Join(unitDir, "vaultd.service.d", "50-site.conf.example")))(t)
	for name, row := range map[string]struct{ lines, threshold string }{
		"AsItIs":    {"nothing", "14"},
		"Addresses": {"IPAddress", "13"},
		"Home":      {"ProtectHome", "16"},
		"Chown":     {"SystemCallFilter", "15"},
		"Widest":    {"ProtectHome|SystemCallFilter|LoadCredential|BindsTo", "17"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			unit, dropIn := filepath.Join(dir, "vaultd.service"), filepath.Join(dir, "vaultd.service.d", "50-site.conf")
			src := kit.Value(os.ReadFile(filepath.Join(unitDir, "vaultd.service")))(t)
			text := regexp.MustCompile(`(?m)^#((?:`+row.lines+`)[A-Za-z]*=)`).ReplaceAll(site, []byte("$1"))
			changed := string(text) != string(site)
			kit.Need(t, changed == (name != "AsItIs"), "no such lines in the drop-in: %v", row.lines)
			kit.Must(t, errors.Join(os.Mkdir(filepath.Dir(dropIn), 0o755), os.WriteFile(unit, src, 0o644), os.WriteFile(dropIn, text, 0o644)))
			out, err := exec.Command(program, "security", "--offline=true", "--no-pager", "--threshold="+row.threshold, unit).CombinedOutput()
			kit.Check(t, err == nil, "%v\n%s", err, tail(string(out), 200))
		})
	}
}

// systemd understands every line of the unit; the paths of programs and pages are put to what is here.
func TestUnit_Verifies(t *testing.T) {
	program := analyzer(t)
	src := kit.Value(os.ReadFile(filepath.Join(unitDir, "vaultd.service")))(t)
	kit.Want(t, "commands", strings.Count(string(src), "=/usr/bin/vaultd "), 2)
	text := strings.ReplaceAll(string(src), "/usr/bin/vaultd ", "/bin/true ")
	text = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(text, "")
	dir := t.TempDir()
	unit := filepath.Join(dir, "vaultd.service")
	site := kit.Value(os.ReadFile(filepath.Join(unitDir, "vaultd.service.d", "50-site.conf.example")))(t)
	for path, content := range map[string]string{unit: text, filepath.Join(dir, "vaultd.service.d", "50-site.conf"): string(site)} {
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		kit.Must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	out, err := exec.Command(program, "verify", "--man=no", unit).CombinedOutput()
	kit.Check(t, err == nil && len(strings.TrimSpace(string(out))) <= 0,
		"%v\n%s\nwant no error, len(strings.TrimSpace(string(out))) <= 0", err, out)
}

// systemd understands the example of a monthly report, which runs a command that exists and leaves the program as little.
func TestUnit_ReportTimer(t *testing.T) {
	program := analyzer(t)
	src := kit.Value(os.ReadFile(filepath.Join(unitDir, "vaultd-report.service")))(t)
	timer, err := os.ReadFile(filepath.Join(unitDir, "vaultd-report.timer"))
	kit.Must(t, err)
	m := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/vaultd (audit --since-last -o /var/lib/vaultd-reports/)$`).FindSubmatch(src)
	kit.Need(t, m != nil && strings.Contains(string(src), "\nStateDirectory=vaultd-reports\n"),
		"%s, want m other than nil, src with \"\\nStateDirectory=vaultd-reports\\n\"", src)
	kit.Lacks(t, "a unit that must fail with a report that is not complete", string(src), "SuccessExitStatus", "Restart=")
	dir := t.TempDir()
	unit := filepath.Join(dir, "vaultd-report.service")
	text := regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(strings.ReplaceAll(string(src), "/usr/bin/vaultd ", "/bin/true "), "")
	err = errors.Join(os.WriteFile(unit, []byte(text), 0o644), os.WriteFile(filepath.Join(dir, "vaultd-report.timer"), timer, 0o644))
	kit.Must(t, err)
	out, err := exec.Command(program, "verify", "--man=no", unit, filepath.Join(dir, "vaultd-report.timer")).CombinedOutput()
	kit.Check(t, err == nil && len(strings.TrimSpace(string(out))) <= 0,
		"%v\n%s\nwant no error, len(strings.TrimSpace(string(out))) <= 0", err, out)
	out, err = exec.Command(program, "security", "--offline=true", "--no-pager", "--threshold=15", filepath.Join(unitDir, "vaultd-report.service")).CombinedOutput()
	kit.Check(t, err == nil, "%v\n%s", err, tail(string(out), 300))
}

// The unit says what the program does: it reloads, keeps its state where the configuration has it by default, and does not
// start again what no new start mends.
func TestUnit_FitsTheProgram(t *testing.T) {
	src := kit.Value(os.ReadFile(filepath.Join(unitDir, "vaultd.service")))(t)
	unit := map[string][]string{}
	for line := range strings.Lines(string(src)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			unit[name] = append(unit[name], value)
		}
	}
	if def := mustLoad(t, smallConfig).StateDir; def != "/var/lib/"+strings.Join(unit["StateDirectory"], "") {
		t.Error("state_dir is by default", def)
	}
	for name, want := range map[string]string{
		"Type": "notify", "ExecReload": "/usr/bin/vaultd reload", "ExecStartPre": "", "ExecStart": "/usr/bin/vaultd run",
		"User": "vaultd", "StateDirectoryMode": "0700", "UMask": "0007", "MemoryMax": "2G", "TasksMax": "512",
	} {
		kit.Want(t, name, strings.Join(unit[name], " "), want)
	}
	var codes []int
	for _, word := range strings.Fields(strings.Join(unit["RestartPreventExitStatus"], " ")) {
		n := kit.Value(strconv.Atoi(word))(t)
		codes = append(codes, n)
	}
	kit.Check(t, slices.Equal(codes, []int{exitUsage, exitRights, exitConfig}), "RestartPreventExitStatus: %v", codes)
	for _, missing := range []string{"PrivateUsers", "ProcSubset", "Environment", "OOMScoreAdjust"} {
		if v := unit[missing]; v != nil {
			t.Errorf("%s=%s does not fit: owners are recorded, the boot's name is read, secrets are files, and no file server ends in place of vaultd", missing, v)
		}
	}
	page := kit.Value(os.ReadFile("../../docs/security.md"))(t)
	for _, name := range []string{"MemoryMax", "TasksMax"} {
		kit.Holds(t, "docs/security.md", string(page), "`"+name+"="+strings.Join(unit[name], " ")+"`")
	}
}

// "make install" puts all that the documents speak of where they say it is, and the unit starts the program that was installed.
func TestInstall(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		kit.Missing(t, "make, for the installation")
	}
	program := realProgram(t)
	root := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "make", "-C", "../..", "install", "DESTDIR="+root, "PREFIX=/opt/vaultd", "PROGRAM="+program)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, holds := range map[string]string{
		"lib/systemd/system/vaultd.service":           "ExecStart=/opt/vaultd/bin/vaultd run\n",
		"lib/sysusers.d/vaultd.conf":                  "vaultd",
		"share/man/man8/vaultd.8":                     "vaultd",
		"share/man/man8/vaultd-list.8":                "list",
		"share/bash-completion/completions/vaultd":    "vaultd",
		"share/zsh/site-functions/_vaultd":            "vaultd",
		"share/fish/vendor_completions.d/vaultd.fish": "vaultd",
		"share/vaultd/config.schema.json":             `"base_url"`,
		"share/vaultd/sidecar.schema.json":            `"documentId"`,
		"share/doc/vaultd/config.example.yaml":        "base_url:",
		"share/doc/vaultd/50-site.conf.example":       "ReadWritePaths=",
	} {
		text, err := os.ReadFile(filepath.Join(root, "opt/vaultd", name))
		kit.Check(t, err == nil && strings.Contains(string(text), holds), "%s: %v, without %q", name, err, holds)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "opt/vaultd/bin/vaultd"), "--version").Output()
	kit.Check(t, err == nil && strings.HasPrefix(string(out), "vaultd "),
		`%q: %v, want no error, out that begins with "vaultd "`, out, err)
}
