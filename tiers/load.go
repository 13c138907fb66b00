package tiers

// MaxDocument is how many bytes the largest policy document has.
const MaxDocument = maxDocument

// Load reads and compiles a policy document, YAML or JSON, of at most [MaxDocument] bytes, in one step. The snapshot has
// the modes of this moment, and the number of the document in its source as its [Snapshot.Generation].
//
// The error is that of [Parse]: a [*PolicyError] with everything that is wrong, each with its line.
func Load(document []byte, generation uint64) (*Snapshot, error) {
	_, snapshot, err := load(document)
	if err != nil {
		return nil, err
	}
	snapshot.family.generation = generation
	return snapshot, nil
}
