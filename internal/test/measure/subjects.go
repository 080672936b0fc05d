package main

import (
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"unicode/utf8"
)

// subjectsSince is the time of the first commit that must keep the form. A time
// is known in a shallow clone too, where the commit itself may be missing.
const subjectsSince = "2026-11-27T01:49:37Z"

// longestSubject is the largest number of characters of a subject.
const longestSubject = 72

var subjectForm = regexp.MustCompile(`^[a-z][a-z0-9/, -]*: \S`)

// checkSubjects prints the commits whose subject has another form than
// "package: what changes" and fails if there is one. It checks the commits
// behind a revision, or all since the rule began, and leaves out merges.
func checkSubjects(w io.Writer, root string, revisions []string) error {
	args := []string{"log", "--no-merges", "--format=%h %s", "--since-as-filter=" + subjectsSince, "HEAD"}
	switch len(revisions) {
	case 0:
	case 1:
		args = []string{"log", "--no-merges", "--format=%h %s", revisions[0] + "..HEAD", "--"}
	default:
		return fmt.Errorf("%d revisions given, want one at most", len(revisions))
	}
	log, err := git(root, args...)
	if err != nil {
		return err
	}
	shallow, err := git(root, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return err
	}
	if strings.TrimSpace(shallow) == "true" {
		fmt.Fprintln(w, "The clone is shallow: only the commits in it are checked.")
	}
	checked, bad := 0, 0
	for line := range strings.Lines(log) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		checked++
		if fault := subjectFault(subject); fault != "" {
			bad++
			fmt.Fprintf(w, "%s %s\n  %s\n", hash, subject, fault)
		}
	}
	if bad > 0 {
		return fmt.Errorf(`%d of %d commit subjects differ from "package: what changes", at most %d characters`, bad, checked, longestSubject)
	}
	fmt.Fprintf(w, "commit subjects: %d checked, all in form\n", checked)
	return nil
}

// subjectFault returns what is wrong with a subject, or an empty text.
func subjectFault(subject string) string {
	if n := utf8.RuneCountInString(subject); n > longestSubject {
		return fmt.Sprintf("got %d characters, want at most %d", n, longestSubject)
	}
	if !subjectForm.MatchString(subject) {
		return "got no package with a colon at the beginning, want \"package: what changes\" in small letters"
	}
	return ""
}

// git runs git in a folder and returns its output. The folder may belong to
// another user, such as the one who cloned it for a build.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, stderr.String())
	}
	return string(out), nil
}
