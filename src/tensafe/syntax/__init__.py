"""What plain Python syntax says of names: whose memory they have, and whether they are read again."""
