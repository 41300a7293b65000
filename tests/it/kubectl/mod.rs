//! A user's session with the real kubectl, the oldest and the newest at hand.

mod attaching;
mod auth;
mod container_files;
mod custom_resources;
mod declarative;
mod deleting;
mod identity;
mod imperative;
mod jobs;
mod looking;
mod measuring;
mod nodes;
mod reaching;
mod rollouts;
mod transcripts;
mod typing;

/// A Deployment as in every tutorial.
const NGINX: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
spec:
  replicas: 2
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      labels:
        app: nginx
    spec:
      containers:
      - name: nginx
        image: nginx:1.25
        ports:
        - containerPort: 80
";
