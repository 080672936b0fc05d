package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

// I17, I26: a kept folder that is not what was archived is named by status until somebody closes it, and a receipt that is made anew says it, before and
// after that. A folder beside it that is as it was archived is not named.
func TestStatus_I17_I26_AKeptFolderThatDiffers(t *testing.T) {
	const what = `the folder changed after it was packed, and the archive has what was packed: "rechnung.pdf" has another content;`
	s := newShelf(t)
	for folder, remote := range map[string]string{"Otto 19": "bum-1", "Kern 6": "bum-2"} {
		s.send(folder, noon.Add(-5*time.Hour), archive.RemoteID(remote))
		s.says(folder, noon.Add(-4*time.Hour), archive.RemoteID(remote), archive.Successful)
	}
	s.tell("Kern 6", noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/Kern 6"}, ledger.Placed{})
	s.tell("Otto 19", noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/Otto 19"}, ledger.Placed{},
		ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged, Text: what}})
	named := func() (present.Need, bool) {
		st := s.summary()
		i := slices.IndexFunc(st.Needs, func(n present.Need) bool { return n.What == "kept-differs" })
		if i < 0 {
			return present.Need{}, false
		}
		return st.Needs[i], true
	}
	if n, is := named(); !is || n.Count != 1 || len(n.Names) != 1 || !strings.Contains(n.Names[0], "Otto 19") || n.When != "soon" || !strings.Contains(n.Do, "vaultd close") {
		t.Errorf("status: %+v", n)
	}
	if out, _, code := s.say("status"); code != exitPerson || !strings.Contains(out, "1 kept folder is not what was archived") {
		t.Errorf("status ends with %d:\n%s", code, out)
	}
	receipt := func(folder string) (rc proof.Receipt, page string) {
		out, errs, code := s.say("receipt", "--json", s.keys[folder].String())
		if err := json.Unmarshal([]byte(out), &rc); err != nil || code != 0 {
			t.Fatalf("err = %v, code = %v, errs = %v, want no error, code = 0", err, code, errs)
		}
		page, _, _ = s.say("receipt", s.keys[folder].String())
		return rc, page
	}
	says := func() {
		t.Helper()
		if rc, page := receipt("Otto 19"); len(rc.Differs) != 1 || rc.Differs[0].What != what || !strings.Contains(page, "KEPT FOLDER") || !strings.Contains(page, `"rechnung.pdf" has another content`) {
			t.Errorf("receipt: %+v\n%s", rc.Differs, page)
		}
	}
	says()
	if rc, page := receipt("Kern 6"); len(rc.Differs) != 0 || strings.Contains(page, "KEPT FOLDER") {
		t.Errorf("receipt of the unchanged one: %+v\n%s", rc.Differs, page)
	}
	s.tell("Otto 19", noon.Add(-time.Hour), nil, ledger.Closed{By: ledger.Operator{UID: 7}})
	if n, is := named(); is {
		t.Errorf("closed: %+v", n)
	}
	says()
}
