package web

import (
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"
)

const (
	minPasswordLength = 12 // characters
	// minDifferentCharacters refuses "xxxxxxxxxxxx", "121212121212" and a row
	// of blanks. Capitals do not count apart.
	minDifferentCharacters = 5
	maxPasswordBytes       = 72 // bcrypt looks at no more
	newHashCost            = 12
)

// User is who may sign in with a password. However it is printed, the hash is not shown.
type User struct {
	Name   string
	Hash   string // of the password, by bcrypt
	Rights Rights
}

// Format prints the name alone, whatever the verb.
func (u User) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[user "+u.Name+"]") }

// HashPassword returns the hash of a new password by bcrypt, or says why the password cannot be used. The error does not show it.
func HashPassword(password string) (string, error) {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return "", errors.New("the password is not text in UTF-8")
	case n < minPasswordLength:
		return "", fmt.Errorf("the password has %d characters; at least %d are needed", n, minPasswordLength)
	case len(password) > maxPasswordBytes:
		return "", fmt.Errorf("the password has %d bytes; bcrypt looks at the first %d alone, so a longer one is refused", len(password), maxPasswordBytes)
	}
	kinds := map[rune]bool{}
	for _, r := range password {
		if unicode.IsControl(r) {
			return "", errors.New("the password has a control character, which nobody can type on a sign-in page")
		}
		kinds[unicode.ToLower(r)] = true
	}
	if len(kinds) < minDifferentCharacters {
		return "", fmt.Errorf("the password has too few different characters: %d; at least %d are needed", len(kinds), minDifferentCharacters)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), newHashCost)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	return string(hash), nil
}

// userList is the users by name.
type userList struct {
	byName  map[string]User
	maxCost int // the highest cost of their hashes
}

// Format keeps hashes from being printed, whatever the verb.
func (userList) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[users]") }

func newUserList(users []User) userList {
	l := userList{byName: map[string]User{}}
	for _, u := range users {
		l.byName[u.Name] = u
		l.maxCost = max(l.maxCost, costOf(u.Hash))
	}
	return l
}

// verifyPassword reports whether a user has this password. Each "no" costs the same, so that the time tells nothing about a name.
func (l userList) verifyPassword(name, password string) bool {
	if len(l.byName) == 0 {
		return false
	}
	hash, fillers := l.hashesFor(name)
	_, known := l.byName[name]
	err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	if err == nil && known && len(password) <= maxPasswordBytes {
		return true
	}
	for _, filler := range fillers {
		_ = bcrypt.CompareHashAndPassword([]byte(filler), []byte(password)) // it never fits
	}
	return false
}

// hashesFor returns the hash that a password is compared with, and those that it is compared with for the time alone: together they cost as
// much as the dearest hash of all users. An unknown name has a hash that no password fits.
func (l userList) hashesFor(name string) (hash string, fillers []string) {
	hash = unknownHash(l.maxCost)
	if u, known := l.byName[name]; known {
		hash = u.Hash
	}
	// A hash of cost n and those of the costs n to m-1 cost as much together as one of cost m.
	for cost := costOf(hash); cost < l.maxCost; cost++ {
		fillers = append(fillers, unknownHash(cost))
	}
	return hash, fillers
}

func costOf(hash string) int {
	cost, err := bcrypt.Cost([]byte(hash))
	if err != nil { // no password fits a broken hash; the configuration refuses one
		return bcrypt.MinCost
	}
	return cost
}

// unknownHash is a hash that no known password has.
func unknownHash(cost int) string {
	return fmt.Sprintf("$2b$%02d$", cost) + "vaultd.unknown.user.......................vaultd.unkn"[:53]
}
