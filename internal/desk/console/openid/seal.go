package openid

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// keys are made from the secret of the client, so that every desk with that secret has them. A public client has keys
// of this process alone: it has no secret that the database and the browser do not have.
type keys struct {
	own [32]byte

	mu     sync.Mutex
	secret string
	made   []byte
}

func (k *keys) init() { _, _ = rand.Read(k.own[:]) } // it never fails

// root is the key of which all others are made. The work is for each new secret.
func (p *Provider) root() ([]byte, error) {
	secret := p.Secret()
	if secret == "" {
		return p.keys.own[:], nil
	}
	p.keys.mu.Lock()
	defer p.keys.mu.Unlock()
	if p.keys.made == nil || p.keys.secret != secret {
		made, err := pbkdf2.Key(sha256.New, secret, []byte("docket openid\x00"+p.Issuer+"\x00"+p.ClientID), p.Rounds, 32)
		if err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		p.keys.secret, p.keys.made = secret, made
	}
	return p.keys.made, nil
}

// box is the cipher for one purpose. Salt belongs to the one who may open it; nil: nobody.
func (p *Provider) box(purpose string, salt []byte) (cipher.AEAD, error) {
	root, err := p.root()
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, root, salt, "docket "+purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

var errSealed = errors.New("it was not sealed here")

func (p *Provider) seal(purpose string, salt, beside []byte, content any) ([]byte, error) {
	box, err := p.box(purpose, salt)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, text, beside), nil
}

func (p *Provider) open(purpose string, salt, beside, sealed []byte, content any) error {
	box, err := p.box(purpose, salt)
	if err != nil {
		return err
	}
	text, err := box.Open(nil, nil, sealed, beside)
	if err != nil {
		return errSealed
	}
	return json.Unmarshal(text, content)
}

// Bind seals the groups of a person for a session. Only the cookie of that session opens it, and only beside the same
// name. A row of the table of sessions alone makes none.
func (p *Provider) Bind(secret []byte, name string, groups []string) ([]byte, error) {
	return p.seal("session", secret, p.beside(name), groups)
}

// Bound returns the groups of a session. An error means that the session does not belong to this provider and client.
func (p *Provider) Bound(secret []byte, name string, sealed []byte) (groups []string, err error) {
	return groups, p.open("session", secret, p.beside(name), sealed, &groups)
}

func (p *Provider) beside(name string) []byte {
	return []byte(p.Issuer + "\x00" + p.ClientID + "\x00" + name)
}
