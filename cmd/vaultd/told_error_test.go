package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// Under --json an error is an object, with its hint and the exit code, and nothing stands on the standard output.
func TestJSON_ErrorsAreObjects(t *testing.T) {
	config := writeConfig(t, "")
	for _, args := range [][]string{{"status"}, {"show", "nosuch"}, {"list"}, {"fetch", "nosuch", "-o", "-"}, {"check", "--schema", "nosuch"}} {
		out, errs, code := runHere(append(args, "--json", "--config", config)...)
		var one struct {
			Error, Hint string
			Code        int
		}
		if args[0] == "check" { // the schema is asked for without a configuration
			out, errs, code = runHere(append(args, "--json")...)
		}
		if err := json.Unmarshal([]byte(errs), &one); err != nil || one.Code != code || code == 0 || one.Error == "" || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q: %v", args, code, out, errs, err)
		}
	}
}

func TestVersion_AsAFlag(t *testing.T) {
	flag, _, code := runHere("--version")
	word, _, _ := runHere("version")
	kit.Check(t, code == 0 && flag == word, "exit %d: %q, and the command says %q", code, flag, word)
}
