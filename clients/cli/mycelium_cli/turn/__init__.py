"""Taking part: waiting for one's turn and answering."""
