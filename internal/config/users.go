package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxUsersSize = 64 << 10 // bytes of users_file: some 800 users
	minCost      = 10
	maxCost      = 14
)

// PageRights are what a user may do on the web port. One right does not imply another.
type PageRights struct {
	Read    bool // see documents
	Fetch   bool // download documents
	Metrics bool // read /metrics and the reasons of the health pages
}

// PageUser is one line of users_file.
type PageUser struct {
	Name   string
	Hash   Secret // of the password, by bcrypt
	Rights PageRights
}

const userForm = "NAME:BCRYPT:RIGHTS"

var (
	pageUserName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	bcryptHash   = regexp.MustCompile(`^\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}$`)
)

var errOldPasswordFile = errors.New("holds one password; it now holds users, one a line: " + userForm + "; vaultd hash-password makes the hash")

// readUsers reads users_file, which must be as private as readPrivate requires. Its errors name lines and never show what stands there.
func readUsers(ref string, env Env) ([]PageUser, error) {
	raw, err := readPrivate(ref, env, maxUsersSize)
	if err != nil {
		return nil, err
	}
	return parseUsers(raw)
}

// parseUsers reads one user from each line. Empty lines and lines that begin with # are comments.
func parseUsers(raw []byte) ([]PageUser, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\ufeff")):
		return nil, errors.New("begins with a byte order mark; save it without")
	case !utf8.Valid(raw):
		return nil, errors.New("is not text in UTF-8")
	}
	var users []PageUser
	hasColon, lines := false, 0
	firstLine := map[string]int{}
	var wrong error
	for number, line := range strings.Split(string(raw), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		lines++
		hasColon = hasColon || strings.Contains(line, ":")
		u, err := parseUser(line)
		if first := firstLine[u.Name]; err == nil && first > 0 {
			err = fmt.Errorf("names the user of line %d again; keep one of them", first)
		}
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("line %d: %w", number+1, err)
		}
		firstLine[u.Name] = number + 1
		users = append(users, u)
	}
	switch {
	case lines == 1 && !hasColon:
		return nil, errOldPasswordFile
	case wrong != nil:
		return nil, wrong
	case lines == 0:
		return nil, errors.New("names no user; write one a line: " + userForm)
	}
	return users, nil
}

// parseUser reads NAME:BCRYPT:RIGHTS. The first two fields are what "htpasswd -nB" prints.
func parseUser(line string) (PageUser, error) {
	fields := strings.Split(line, ":")
	if len(fields) == 2 {
		return PageUser{}, errors.New("has no rights: write " + userForm + ", with RIGHTS such as read or read,fetch")
	}
	if len(fields) != 3 {
		return PageUser{}, errors.New("is not " + userForm)
	}
	u := PageUser{Name: fields[0], Hash: Secret(fields[1])}
	if err := CheckPageUserName(u.Name); err != nil {
		return PageUser{}, err
	}
	m := bcryptHash.FindStringSubmatch(fields[1])
	if m == nil {
		return PageUser{}, errors.New("has no hash of bcrypt in its second field; vaultd hash-password makes one")
	}
	switch cost, err := strconv.Atoi(m[1]); {
	case err != nil || cost < minCost:
		return PageUser{}, fmt.Errorf("has a hash of cost %s, which is guessed too fast; the cost is %d to %d: htpasswd -nB -C 12, or vaultd hash-password", m[1], minCost, maxCost)
	case cost > maxCost:
		return PageUser{}, fmt.Errorf("has a hash of cost %s, which takes seconds of this machine for each sign-in; the cost is %d to %d: htpasswd -nB -C 12, or vaultd hash-password",
			m[1], minCost, maxCost)
	}
	var err error
	u.Rights, err = ParsePageRights(strings.Split(fields[2], ","))
	if err != nil {
		return PageUser{}, err
	}
	return u, nil
}

// CheckPageUserName says why a name cannot be that of a user in users_file. The error does not show the name.
func CheckPageUserName(name string) error {
	if !pageUserName.MatchString(name) {
		return errors.New("has a name that is not 1 to 64 letters without accents, digits, dots, dashes, underscores and @")
	}
	return nil
}

// ParsePageRights reads a list of rights. The right fetch is refused without read: who may download sees documents. The error does
// not show the words, which may be part of a secret in the wrong place.
func ParsePageRights(words []string) (PageRights, error) {
	if len(words) == 0 {
		return PageRights{}, errors.New("has no right; rights are read, fetch and metrics")
	}
	return parseWords(words)
}

func parseWords(words []string) (r PageRights, err error) {
	for _, word := range words {
		switch strings.TrimSpace(word) {
		case "read":
			r.Read = true
		case "fetch":
			r.Fetch = true
		case "metrics":
			r.Metrics = true
		default:
			return PageRights{}, errors.New("has a right that is not known; rights are read, fetch and metrics, such as read,fetch")
		}
	}
	if r.Fetch && !r.Read {
		return PageRights{}, errors.New("has the right fetch without read; fetch needs read too: write read,fetch")
	}
	return r, nil
}
