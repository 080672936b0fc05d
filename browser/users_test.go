package browser

import (
	"os/exec"
	"path/filepath"
	"strings"

	"vaultd/internal/test/kit"
)

// The users of a world: one may see documents, the other may download them too.
const (
	reader   = "ben"
	fetcher  = "anna"
	password = "correct horse battery"
)

// addUsers makes the file of the users, which the configuration of a world with users names.
func (w *world) addUsers() {
	w.t.Helper()
	var lines strings.Builder
	for user, rights := range map[string]string{reader: "read", fetcher: "read,fetch"} {
		cmd := exec.CommandContext(w.t.Context(), w.program, "hash-password", user, "--rights", rights)
		cmd.Stdin = strings.NewReader(password + "\n")
		line, err := cmd.Output()
		kit.Need(w.t, err == nil, "vaultd hash-password: %v", err)
		lines.Write(line)
	}
	w.write("users", lines.String(), 0o600)
}

// usersFile is what the configuration of a world with users says below http.
func usersFile(dir string) string {
	return "  access: {users_file: " + filepath.Join(dir, "users") + "}\n"
}

// openFolder is the folder of an invoice that stays on its way.
const openFolder = "Offen 9"

// leaveOneOpen drops one more invoice while the service fails, so that it stays on its way.
func (w *world) leaveOneOpen() {
	w.t.Helper()
	w.breakService()
	w.drop(invoice{folder: openFolder, metadata: invoices()[0].metadata, content: "on its way"})
	w.awaitStates([]invoice{{folder: openFolder, state: "packaged"}})
}
