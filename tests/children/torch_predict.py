"""torch_predict.py - submission.csv from the model.pt that torch_train.py has left."""
import torch

from torch_train import Pictures, device, network

model = network().to(device)
model.load_state_dict(torch.load("model.pt", map_location=device))
model.eval()
pictures = Pictures(200)
with open("submission.csv", "w") as out, torch.no_grad():
    out.write("id,label\n")
    for i in range(len(pictures)):
        picture, _ = pictures[i]
        out.write(f"{i},{model(picture[None].to(device).float() / 255).argmax().item()}\n")
print("submission.csv written")
