package idempotency_test

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// compressed is a codec that compresses answers.
type compressed struct{}

// largestAnswer bounds what a few stored bytes can become.
const largestAnswer = 1 << 20

func (compressed) Encode(_ string, answer []byte) ([]byte, error) {
	var kept bytes.Buffer
	w := gzip.NewWriter(&kept)
	if _, err := w.Write(answer); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return kept.Bytes(), nil
}

func (compressed) Decode(_ string, kept []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(kept))
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(io.LimitReader(r, largestAnswer+1))
	if err == nil && len(answer) > largestAnswer {
		err = errors.New("the answer is too large")
	}
	return answer, err
}

// encrypted is a codec that encrypts answers with AES-GCM. An answer is bound to the name of its record.
type encrypted struct{ cipher.AEAD }

// newEncrypted takes a secret of 32 bytes, the same in all replicas.
func newEncrypted(secret []byte) (encrypted, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return encrypted{}, err
	}
	// The nonce is random, and stands before the text.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return encrypted{aead}, err
}

func (e encrypted) Encode(name string, answer []byte) ([]byte, error) {
	return e.Seal(nil, nil, answer, []byte(name)), nil
}

func (e encrypted) Decode(name string, kept []byte) ([]byte, error) {
	return e.Open(nil, nil, kept, []byte(name))
}

// A codec that compresses, for Config.Idempotency.Codec.
func ExampleCodec_compression() {
	var codec idempotency.Codec = compressed{}
	answer := []byte(`{"data":{"users":[` + strings.Repeat(`{"name":"Ada"},`, 100) + `null]}}`)
	kept, err := codec.Encode("record", answer)
	fmt.Println(len(kept) < len(answer)/10, err)
	again, err := codec.Decode("record", kept)
	fmt.Println(bytes.Equal(again, answer), err)
	// Output:
	// true <nil>
	// true <nil>
}

// A codec that encrypts, for Config.Idempotency.Codec. What was kept for one record is of no use for another.
func ExampleCodec_encryption() {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // in earnest from where the server has its other secrets
	codec, err := newEncrypted(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	kept, err := codec.Encode("record", []byte(`{"data":{"iban":"DE02"}}`))
	fmt.Println(bytes.Contains(kept, []byte("DE02")), err)
	answer, err := codec.Decode("record", kept)
	fmt.Println(string(answer), err)
	_, err = codec.Decode("another record", kept)
	fmt.Println(err)
	// Output:
	// false <nil>
	// {"data":{"iban":"DE02"}} <nil>
	// cipher: message authentication failed
}
